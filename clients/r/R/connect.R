# A table behind a server: its public facts, and what is left to spend.

sulq_connect <- function(url, token = Sys.getenv("SULQ_TOKEN"), credits = 0, purpose = NULL,
                         timeout = 100, retries = 4, cainfo = NULL, insecure = FALSE) {
  if ((credits > 0) != !is.null(purpose)) {
    abort(sprintf(paste0(
      "credits = %s and purpose = %s: want both or neither; a connection spends only under a",
      " name, as in credits = 20, purpose = \"dashboard\""), shown(credits), shown(purpose)),
      "invalid_query")
  }
  server <- new_server(url, token, timeout, retries, cainfo, insecure)
  name <- server$address$table
  if (is.null(name)) {
    listed <- vapply(send(server, "GET", "/v1/tables")$tables, function(one) one$name, "")
    if (length(listed) != 1L) {
      abort(sprintf("say which table: %s/NAME; this token may see %s", server$address$base,
                    if (length(listed)) paste(listed, collapse = ", ") else "none"),
            "invalid_query")
    }
    name <- listed
  }
  table <- structure(list(server = server, name = name, credits = credits, purpose = purpose),
                     class = "sulq_table")
  facts <- get(table, "schema")
  table$facts_id <- facts$facts_id
  table$size <- facts$size
  table$promise <- facts$promise
  table$columns <- schema_frame(facts$schema)
  table
}

get <- function(table, path) send(table$server, "GET", path_of(table, path))

path_of <- function(table, path) {
  paste0("/v1/tables/", utils::URLencode(table$name, reserved = TRUE), "/", path)
}

check_table <- function(table) {
  if (!inherits(table, "sulq_table")) {
    abort(sprintf("want a table of sulq_connect(), got %s", shown(table)), "invalid_query")
  }
}

sulq_tables <- function(url, token = Sys.getenv("SULQ_TOKEN"), timeout = 100, retries = 4,
                        cainfo = NULL, insecure = FALSE) {
  server <- new_server(url, token, timeout, retries, cainfo, insecure)
  found <- send(server, "GET", "/v1/tables")$tables
  data.frame(
    name = vapply(found, function(one) one$name, ""),
    state = vapply(found, function(one) one$state, ""),
    size = vapply(found, function(one) number(one$size), 0),
    credits = vapply(found, function(one) one$credits, 0),
    left = vapply(found, function(one) one$left, 0)
  )
}

sulq_schema <- function(table) {
  check_table(table)
  table$columns
}

schema_frame <- function(schema) {
  columns <- schema$columns
  kinds <- c("number", "flag", "category", "date", "datetime")
  kind <- vapply(columns, function(one) c(intersect(kinds, names(one)), "other")[[1L]], "")
  end <- function(place) vapply(seq_along(columns), function(i) {
    ends <- columns[[i]][[kind[[i]]]]
    if (kind[[i]] %in% c("number", "date", "datetime") && length(ends) == 2L) ends[[place]] else NA_character_
  }, "")
  frame <- data.frame(
    name = vapply(columns, function(one) one$name, ""),
    kind = kind,
    public = vapply(columns, function(one) isTRUE(one$public), NA),
    low = end(1L),
    high = end(2L),
    step = vapply(columns, function(one) if (is.null(one$step)) NA_character_ else one$step, "")
  )
  frame$values <- lapply(columns, function(one) unlist(one$category))
  frame
}

sulq_remaining <- function(table) {
  check_table(table)
  get(table, "schema")$remaining
}

sulq_statement <- function(table) {
  check_table(table)
  found <- get(table, "statement")
  found[c("table", "credits", "spent", "left", "mine", "guarantee", "questions", "ledger", "seq",
          "head", "public_key")]
}

number <- function(value) if (is.null(value)) NA_real_ else as.numeric(value)
