# Signed entries of the ledger, verified offline with the table's public key.

sulq_receipts <- function(table) {
  check_table(table)
  lines <- list()
  after <- 0
  repeat {
    page <- get(table, sprintf("answers?after=%.0f&limit=500", after))
    lines <- c(lines, page$entries)
    if (is.null(page[["next"]])) break
    after <- page[["next"]]
  }
  data.frame(
    number = vapply(lines, function(one) number(one$seq), 0),
    question = vapply(lines, function(one) one$question, ""),
    credits = vapply(lines, function(one) as.numeric(one$receipt$receipt$share[[1L]]) / 2^64, 0)
  )
}

sulq_receipt <- function(table, number) {
  check_table(table)
  new_receipt(get(table, sprintf("receipts/%.0f", number)))
}

new_receipt <- function(found) {
  structure(list(number = found$receipt$seq, body = found$receipt, signature = found$signature),
            class = "sulq_receipt")
}

sulq_verify <- function(receipt, public_key) {
  if (inherits(receipt, "sulq_answer")) receipt <- receipt$receipt
  if (!inherits(receipt, "sulq_receipt")) {
    abort(sprintf("want a receipt or an answer that has one, got %s", shown(receipt)),
          "invalid_query")
  }
  key <- tryCatch(openssl::read_ed25519_pubkey(unhex(public_key)), error = function(e) {
    abort("want a public key of 64 hexadecimal digits; sulq_statement(table)$public_key is the table's",
          "invalid_query")
  })
  message <- charToRaw(canonical_json(receipt$body))
  isTRUE(tryCatch(openssl::ed25519_verify(message, unhex(receipt$signature), key),
                  error = function(e) FALSE))
}

unhex <- function(text) {
  if (!is.character(text) || length(text) != 1L || !grepl("^([0-9a-f]{2})+$", text)) {
    abort("want hexadecimal digits", "invalid_query")
  }
  pairs <- substring(text, seq(1L, nchar(text), 2L), seq(2L, nchar(text), 2L))
  as.raw(strtoi(pairs, 16L))
}

# The text that is signed: sorted names, no blanks, ASCII. Receipts have whole numbers and texts.
canonical_json <- function(value) {
  if (is.null(value)) return("null")
  if (is.list(value) && !is.null(names(value))) {
    ordered <- value[order(names(value), method = "radix")]
    parts <- paste0(vapply(names(ordered), quoted, ""), ":", vapply(ordered, canonical_json, ""))
    return(paste0("{", paste(parts, collapse = ","), "}"))
  }
  if (is.list(value)) return(paste0("[", paste(vapply(value, canonical_json, ""), collapse = ","), "]"))
  if (is.logical(value)) return(if (value) "true" else "false")
  if (is.character(value)) quoted(value) else sprintf("%.0f", value)
}

quoted <- function(text) {
  codes <- utf8ToInt(enc2utf8(text))
  if (!length(codes)) return("\"\"")
  short <- c("34" = "\\\"", "92" = "\\\\", "10" = "\\n", "13" = "\\r", "9" = "\\t", "8" = "\\b",
             "12" = "\\f")
  letters <- vapply(codes, function(code) {
    if (as.character(code) %in% names(short)) return(short[[as.character(code)]])
    if (code >= 32L && code <= 126L) return(intToUtf8(code))
    if (code < 65536L) return(sprintf("\\u%04x", code))
    over <- code - 65536L
    sprintf("\\u%04x\\u%04x", 55296L + over %/% 1024L, 56320L + over %% 1024L)
  }, "")
  paste0("\"", paste(letters, collapse = ""), "\"")
}
