# Prices, which are free, and questions, which are charged.

# What every request says: how exactly, and by which facts it is read.
price_terms <- function(table, within = NULL, credits = NULL, confidence = 0.95, rows = NULL) {
  drop_null(list(
    facts_id = table$facts_id, within = within, confidence = confidence,
    credits = if (!is.null(credits)) ratio(credits, "credits"),
    rows = if (!is.null(rows)) as.integer(rows)
  ))
}

# A connection spends nothing unless it has a purpose and credits for it.
spending_terms <- function(table) {
  if (is.null(table$purpose)) return(list(max_credits = 0L))
  list(purpose = table$purpose, purpose_credits = ratio(table$credits, "credits"))
}

drop_null <- function(values) values[!vapply(values, is.null, NA)]

post <- function(table, path, body, key = NULL) {
  send(table$server, "POST", path_of(table, path), body, key = key)
}

sulq_quote <- function(table, question, within = NULL, credits = NULL, confidence = 0.95,
                       rows = NULL, params = NULL, dialect = NULL) {
  check_table(table)
  asked <- substitute(question)
  found <- if (is.call(asked) && call_name(asked) %in% names(BUILDERS)) {
    read_question(asked, parent.frame())
  } else {
    question
  }
  body <- price_terms(table, within, credits, confidence, rows)
  body <- c(body, if (is.character(found)) {
    statement_terms(found, params, dialect)
  } else {
    list(question = form_to_send(found))
  })
  reply <- post(table, "quote", body)
  structure(list(
    credits = reply$credits, credits_exact = reply$credits_exact, left_after = reply$left_after,
    affordable = reply$affordable, repeated = reply[["repeat"]],
    half_width = flatten(reply$half_width), confidence = reply$confidence, note = reply$note,
    notes = unlist(reply$notes),
    columns = if (!is.null(reply$columns)) data.frame(
      name = vapply(reply$columns, function(one) one$name, ""),
      half_width = vapply(reply$columns, function(one) number(one$half_width), 0)
    ),
    questions = if (!is.null(reply$questions)) vapply(reply$questions, function(one) one$question, "")
  ), class = "sulq_quote")
}

form_to_send <- function(question) {
  if (!inherits(question, "sulq_question")) {
    abort(sprintf("want a question such as count(where = age >= 65), got %s", shown(question)),
          "invalid_query")
  }
  question$form
}

sulq_ask <- function(table, question, within = NULL, credits = NULL, confidence = 0.95,
                     rows = NULL, key = new_key()) {
  check_table(table)
  asked <- substitute(question)
  if (!(is.call(asked) && call_name(asked) %in% names(BUILDERS)) && inherits(question, "sulq_plan")) {
    return(ask_plan(table, question, key))
  }
  found <- read_question(asked, parent.frame())
  body <- c(price_terms(table, within, credits, confidence, rows), spending_terms(table),
            list(question = found$form))
  new_answer(post(table, "ask", body, key), found)
}

new_answer <- function(reply, question) {
  structure(list(
    kind = reply$kind, typed = question$typed, value = flatten(reply$value),
    standard_error = flatten(reply$standard_error), low = flatten(reply$low),
    high = flatten(reply$high), confidence = reply$confidence,
    keys = reply$keys, axes = unlist(reply$axes), credits = reply$credits,
    credits_exact = reply$credits_exact, note = reply$note,
    receipt = if (!is.null(reply$receipt)) new_receipt(reply$receipt)
  ), class = "sulq_answer")
}

# Nested lists of numbers row by row; what is not finite or not known is NA.
flatten <- function(nested) {
  if (is.null(nested)) return(NA_real_)
  if (!is.list(nested)) return(as.numeric(nested))
  unlist(lapply(nested, flatten), use.names = FALSE)
}

sulq_sql <- function(table, statement, params = NULL, dialect = NULL, credits = NULL,
                     confidence = 0.95, rows = NULL, dummy = FALSE, key = new_key()) {
  check_table(table)
  body <- c(price_terms(table, NULL, credits, confidence, rows), spending_terms(table),
            statement_terms(statement, params, dialect), if (isTRUE(dummy)) list(dummy = TRUE))
  result_frame(post(table, "sql", body, key))
}

statement_terms <- function(statement, params, dialect) {
  if (!is.character(statement) || length(statement) != 1L || is.na(statement)) {
    abort(sprintf("want a statement as one text, got %s", shown(statement)), "invalid_query")
  }
  given <- if (!is.null(params)) lapply(plain_list(params), parameter)
  drop_null(list(sql = enc2utf8(statement), params = given, dialect = dialect))
}

parameter <- function(value) {
  if (length(value) != 1L || !is.atomic(value)) {
    abort(sprintf("a parameter is one value, got %s", shown(value)), "invalid_query")
  }
  if (is.na(value)) return(NULL)
  if (inherits(value, "POSIXct")) return(format(value, "%Y-%m-%d %H:%M:%S", tz = "UTC"))
  if (inherits(value, "Date") || is.factor(value)) as.character(value) else value
}

# Keys as they are; an aggregate n as n, n_low and n_high.
result_frame <- function(reply) {
  columns <- list()
  bars <- character()
  for (place in seq_along(reply$columns)) {
    column <- reply$columns[[place]]
    cells <- lapply(reply$rows, function(row) row[[place]])
    if (isTRUE(column$is_key)) {
      columns[[column$name]] <- simple(cells)
    } else {
      bars <- c(bars, column$name)
      for (part in c("value", "low", "high")) {
        name <- if (part == "value") column$name else paste0(column$name, "_", part)
        columns[[name]] <- vapply(cells, function(cell) number(cell[[part]]), 0)
      }
    }
  }
  frame <- as.data.frame(columns, optional = TRUE, stringsAsFactors = FALSE)
  names(frame) <- names(columns)
  structure(frame, class = c("sulq_result", "data.frame"), bars = bars, credits = reply$credits,
            confidence = reply$confidence, notes = unlist(reply$notes),
            receipts = unlist(reply$receipts))
}

# A list of keys as a vector; ranges as "0 to 18"; NULL is NA.
simple <- function(cells) {
  plain <- lapply(cells, function(cell) {
    if (is.null(cell)) NA else if (is.list(cell)) range_text(cell) else cell
  })
  if (length(plain)) unlist(plain) else character()
}

range_text <- function(cell) {
  ends <- vapply(cell, function(end) if (is.null(end)) "NULL" else format(end), "")
  paste(ends, collapse = " to ")
}

sulq_plan <- function(table, ..., credits = NULL, within = NULL, weights = NULL,
                      confidence = 0.95, rows = NULL) {
  check_table(table)
  typed <- as.list(substitute(list(...)))[-1L]
  if (!length(typed)) abort("a plan has at least one question", "invalid_query")
  env <- parent.frame()
  questions <- lapply(unname(typed), read_question, env = env)
  body <- price_terms(table, NULL, credits, confidence, rows)
  body$within <- if (length(within) > 1L) as.list(within) else within
  if (!is.null(weights)) body$weights <- lapply(weights, ratio, what = "a weight")
  body$questions <- lapply(questions, function(one) one$form)
  reply <- post(table, "plan", body)
  lines <- reply$lines
  structure(list(
    body = body, questions = questions, names = names(typed), credits = reply$credits,
    left_after = reply$left_after, affordable = reply$affordable, confidence = reply$confidence,
    lines = data.frame(
      question = vapply(lines, function(one) one$question, ""),
      credits = vapply(lines, function(one) one$credits, 0),
      half_width = vapply(lines, function(one) max(flatten(one$half_width)), 0),
      repeated = vapply(lines, function(one) isTRUE(one[["repeat"]]), NA)
    )
  ), class = "sulq_plan")
}

ask_plan <- function(table, plan, key) {
  reply <- post(table, "plan/ask", c(plan$body, spending_terms(table)), key)
  answers <- Map(new_answer, reply$answers, plan$questions)
  names(answers) <- plan$names
  answers
}
