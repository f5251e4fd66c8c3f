# Numbers that are sent without rounding, and numbers with error bars as they are shown.

# The ratio that a number spells: 0.1 is "1/10", 1e5 is "100000".
ratio <- function(number, what = "a number") {
  if (!is.numeric(number) || length(number) != 1L || !is.finite(number)) {
    abort(sprintf("%s must be one finite number, got %s", what, shown(number)), "invalid_query")
  }
  for (digits in 0:16) {
    text <- sprintf("%.*e", digits, number)
    if (as.numeric(text) == number) break
  }
  parts <- strsplit(text, "e", fixed = TRUE)[[1L]]
  whole <- sub("\\.", "", parts[[1L]])
  shift <- as.integer(parts[[2L]]) - digits
  if (abs(shift) > 150L) abort(sprintf("%s is too large or too small: %s", what, text), "invalid_query")
  sign <- if (startsWith(whole, "-")) "-" else ""
  whole <- sub("^0+(?=.)", "", sub("^-", "", whole), perl = TRUE)
  if (shift >= 0L) return(paste0(sign, whole, if (whole != "0") strrep("0", shift)))
  paste0(sign, whole, "/1", strrep("0", -shift))
}

read_ratio <- function(text) {
  parts <- as.numeric(strsplit(text, "/", fixed = TRUE)[[1L]])
  if (length(parts) == 2L) parts[[1L]] / parts[[2L]] else parts[[1L]]
}

# Credits paid, in four decimals and rounded up; credits left are rounded down.
credits_text <- function(credits, left = FALSE) {
  near <- 1e-9
  scaled <- credits * 1e4
  rounded <- if (left) floor(scaled + near) else ceiling(scaled - near)
  if (credits > 0 && credits < 1e-3) rounded <- signif(credits, 3L) * 1e4
  text <- format(rounded / 1e4, big.mark = ",", digits = 15L, trim = TRUE, scientific = FALSE)
  paste0(text, if (credits == 1) " credit" else " credits")
}

# `value` to the place of the error's second digit; to six digits where there is none.
significant <- function(value, error = 0) {
  if (is.na(value)) return("unknown")
  if (!is.finite(value)) return("unbounded")
  if (!is.finite(error) || error <= 0) {
    digits <- if (abs(value) < 1e15 && abs(value) >= 1e6) 15L else 6L
    return(trimws(formatC(value, digits = digits, format = "fg", big.mark = ",")))
  }
  place <- floor(log10(abs(error))) - 1
  rounded <- round(value, -place) + 0
  formatC(rounded, digits = max(0, -place), format = "f", big.mark = ",")
}

# "1,234 [1,210, 1,260]": a value and its interval, rounded outwards. Digits end where the noise
# begins; an answer without noise is a number alone.
bar <- function(value, low, high) {
  if (anyNA(c(low, high))) {
    return(paste0(significant(value), " [", end_text(low), ", ", end_text(high), "]"))
  }
  if (!is.na(value) && low == high && value == low) return(significant(value))
  whole <- all(c(value, low, high) == round(c(value, low, high)), na.rm = TRUE)
  error <- max((high - low) / 4, if (whole) 10 else 0)
  if (!is.finite(error) || error <= 0) {
    return(paste0(significant(value), " [", significant(low), ", ", significant(high), "]"))
  }
  place <- 10^(floor(log10(error)) - 1)
  lower <- floor(low / place + 1e-9) * place
  upper <- ceiling(high / place - 1e-9) * place
  paste0(significant(value, error), " [", significant(lower, error), ", ",
         significant(upper, error), "]")
}

end_text <- function(end) if (is.na(end)) "unbounded" else significant(end)

percent <- function(share) paste0(format(100 * share, digits = 6L), " %")
