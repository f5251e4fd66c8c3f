# One request at a time to a server, sent again until a reply comes. A question keeps its key, so
# that nothing is charged twice.

AWAY <- c(502L, 503L, 504L)
PATIENCE <- 60 # seconds: who is told to wait longer is told so instead

read_address <- function(url) {
  pattern <- "^(https?)://(\\[[0-9a-fA-F:.]+\\]|[^/?#@:\\[\\]]+)(:[0-9]+)?(/[^?#]*)?$"
  if (!is.character(url) || length(url) != 1L || is.na(url) ||
      !length(parts <- regmatches(url, regexec(pattern, trimws(url), perl = TRUE))[[1L]])) {
    abort(sprintf("want an address such as https://host/people, got %s", shown(url)),
          "invalid_query")
  }
  steps <- Filter(nzchar, strsplit(parts[[5L]], "/", fixed = TRUE)[[1L]])
  table <- if (length(steps)) steps[[length(steps)]]
  steps <- utils::head(steps, -1L)
  if (identical(utils::tail(steps, 2L), c("v1", "tables"))) steps <- utils::head(steps, -2L)
  host <- gsub("[][]", "", parts[[3L]])
  list(
    base = paste(c(paste0(parts[[2L]], "://", parts[[3L]], parts[[4L]]), steps), collapse = "/"),
    table = table,
    encrypted = parts[[2L]] == "https",
    loopback = host %in% c("localhost", "::1") || grepl("^127(\\.[0-9]{1,3}){3}$", host)
  )
}

# How to reach a server. The token is kept in a closure: it is not shown with the object.
new_server <- function(url, token, timeout, retries, cainfo, insecure) {
  address <- read_address(url)
  token <- trimws(token)
  if (!is.character(token) || length(token) != 1L || !grepl("^[!-~]+$", token, perl = TRUE)) {
    abort("no token: give one, or set SULQ_TOKEN; the owner of the table hands them out",
          "invalid_query")
  }
  if (!address$encrypted && !address$loopback && !isTRUE(insecure)) {
    abort(paste0(address$base, " is neither https nor this machine: who is on the way could read",
                 " the token and ask in your name; use https (insecure = TRUE says that the way",
                 " is protected otherwise)"), "refused")
  }
  force(timeout)
  force(cainfo)
  request <- function(path) {
    made <- httr2::request(paste0(address$base, path))
    made <- httr2::req_headers(made, Accept = "application/json")
    made <- httr2::req_auth_bearer_token(made, token)
    made <- httr2::req_user_agent(made, "sulq-r")
    made <- httr2::req_timeout(made, timeout)
    # a token is sent to nobody but who was named; in the clear no proxy is asked
    made <- httr2::req_options(made, followlocation = 0L)
    if (!address$encrypted) made <- httr2::req_options(made, proxy = "")
    if (!is.null(cainfo)) made <- httr2::req_options(made, cainfo = cainfo)
    httr2::req_error(made, is_error = function(response) FALSE)
  }
  list(address = address, request = request, retries = retries)
}

# Send a request and return its reply as nested lists; raise what the server refuses.
send <- function(server, method, path, body = NULL, key = NULL, again = TRUE) {
  request <- httr2::req_method(server$request(path), method)
  if (!is.null(body)) request <- httr2::req_body_raw(request, to_json(body), "application/json")
  if (!is.null(key)) request <- httr2::req_headers(request, `Idempotency-Key` = key)
  attempt <- 0L
  repeat {
    reply <- tryCatch(httr2::req_perform(request), error = identity)
    outcome <- judge(reply, server, key)
    if (outcome$done) return(outcome$reply)
    if (is.null(outcome$wait) || attempt >= server$retries) stop(outcome$error)
    Sys.sleep(outcome$wait + min(8, 0.2 * 2^attempt))
    attempt <- attempt + 1L
  }
}

judge <- function(reply, server, key) {
  base <- server$address$base
  if (inherits(reply, "error")) {
    remedy <- "is the server running, and are scheme, host and port right?"
    if (!is.null(key)) remedy <- paste0(remedy, sprintf(
      " It may have been charged: ask again with key = \"%s\", which costs no more", key))
    lost <- condition(sprintf("no reply from %s; %s", base, remedy), "unreachable",
                      key = key, credits_spent = NA_real_)
    return(list(done = FALSE, wait = 0, error = lost))
  }
  status <- httr2::resp_status(reply)
  text <- if (length(reply$body)) httr2::resp_body_string(reply, "UTF-8") else "null"
  found <- tryCatch(jsonlite::fromJSON(text, simplifyVector = FALSE), error = function(e) NULL)
  if (status >= 200L && status < 300L) return(list(done = TRUE, reply = found))
  if (!is.list(found) || is.null(found$code)) {
    return(list(done = FALSE, error = condition(
      sprintf("%s replied with status %d, not as sulq; are scheme, port and path right?",
              base, status), "unreachable", key = key, credits_spent = NA_real_)))
  }
  wait <- NULL
  if (status == 429L) {
    wait <- suppressWarnings(as.numeric(httr2::resp_header(reply, "Retry-After")))
    wait <- if (!length(wait) || is.na(wait)) 0 else if (wait <= PATIENCE) wait
  } else if (status %in% AWAY && found$code != "engine_failed") {
    wait <- 0
  }
  list(done = FALSE, wait = wait, error = problem(found))
}

# A refusal of the server as an R condition: `sulq_budget_spent`, `sulq_invalid_query`, ...
problem <- function(found) {
  detail <- found$detail
  if (found$code == "price_changed" && !is.null(found$about$credits)) {
    detail <- sprintf(paste0(
      "this costs %s, more than this connection may spend; connect with credits = and purpose =",
      " to let it spend"), credits_text(read_ratio(found$about$credits)))
    found$hint <- ""
  }
  hint <- if (is.null(found$hint) || !nzchar(found$hint)) "" else paste0("; ", found$hint)
  spent <- found$credits_spent
  condition(paste0(detail, hint), found$code, reason = found$reason, about = found$about,
            start = found$start, end = found$end, alternatives = unlist(found$alternatives),
            credits_spent = if (is.null(spent)) NA_real_ else spent)
}

condition <- function(message, code, ..., credits_spent = 0) {
  structure(
    class = c(paste0("sulq_", code), "sulq_error", "error", "condition"),
    list(message = message, call = NULL, code = code, credits_spent = credits_spent, ...)
  )
}

abort <- function(message, code) stop(condition(message, code))

shown <- function(value) {
  text <- paste(deparse(value, width.cutoff = 60L), collapse = " ")
  if (nchar(text) > 60L) paste0(substr(text, 1L, 57L), "...") else text
}

to_json <- function(value) {
  jsonlite::toJSON(value, auto_unbox = TRUE, null = "null", na = "null", digits = NA)
}

# A fresh key of 128 bits. It does not touch the seed of R's own generator.
new_key <- function() paste(openssl::rand_bytes(16L), collapse = "")
