# Tables, prices and answers as they stand on a screen: every number with its interval.

format.sulq_table <- function(x, ...) {
  spends <- if (is.null(x$purpose)) {
    "spends nothing (give credits = and purpose = to let it)"
  } else {
    sprintf("spends up to %s for \"%s\"", credits_text(x$credits), x$purpose)
  }
  c(sprintf("<sulq table %s at %s>", x$name, x$server$address$base),
    sprintf("%s rows, %d columns; %s",
            if (is.null(x$size)) "not told how many" else format(x$size, big.mark = ","),
            nrow(x$columns), spends))
}

print.sulq_table <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

format.sulq_question <- function(x, ...) sprintf("<question %s>", x$typed)

print.sulq_question <- function(x, ...) {
  cat(format(x), sep = "\n")
  invisible(x)
}

format.sulq_quote <- function(x, ...) {
  price <- credits_text(x$credits)
  if (!is.null(x$columns)) {
    count <- length(x$questions)
    return(sprintf("<quote %s, %d question%s>", price, count, if (count == 1L) "" else "s"))
  }
  widths <- unique(x$half_width)
  within <- if (all(is.na(widths))) "no bar" else {
    paste0("+-", format(max(widths, na.rm = TRUE), digits = 6L, big.mark = ","))
  }
  sprintf("<quote %s, %s (%s)>", price, within, percent(x$confidence))
}

print.sulq_quote <- function(x, ...) {
  cat(format(x), sep = "\n")
  if (!is.null(x$columns) && nrow(x$columns)) {
    cat(sprintf("  %s +-%s\n", x$columns$name, format(x$columns$half_width, digits = 6L,
                                                     big.mark = ",", trim = TRUE)), sep = "")
  }
  said <- c(x$note, x$notes)
  said <- said[nzchar(said)]
  if (length(said)) cat(paste0("  ", said, "\n"), sep = "")
  if (!isTRUE(x$affordable)) cat("  more than is left for you\n")
  invisible(x)
}

format.sulq_answer <- function(x, ...) {
  if (length(x$axes)) {
    return(sprintf("<answer: %d values by %s, %s>", length(x$value),
                   paste(x$axes, collapse = " and "), credits_text(x$credits)))
  }
  text <- bar(x$value, x$low, x$high)
  sprintf("<answer %s at %s, %s>", text, percent(x$confidence), credits_text(x$credits))
}

print.sulq_answer <- function(x, ...) {
  cat(format(x), sep = "\n")
  if (length(x$axes)) {
    frame <- as.data.frame(x)
    frame$value <- mapply(bar, x$value, x$low, x$high)
    shown <- frame[setdiff(names(frame), c("low", "high", "standard_error"))]
    print(utils::head(shown, 60L), row.names = FALSE, right = TRUE)
    if (nrow(shown) > 60L) cat(sprintf("and %d rows more\n", nrow(shown) - 60L))
  }
  if (nzchar(x$note)) cat(x$note, "\n", sep = "")
  invisible(x)
}

# One row for each value: its keys, the value, its interval, its standard error.
as.data.frame.sulq_answer <- function(x, row.names = NULL, optional = FALSE, ...) {
  figures <- data.frame(value = x$value, low = x$low, high = x$high,
                        standard_error = x$standard_error)
  if (!length(x$axes) || !length(x$keys)) return(figures)
  each <- if (length(x$axes) == 1L) list(x$keys) else x$keys
  columns <- lapply(each, simple)
  names(columns) <- if (identical(x$kind, "quantiles")) "share" else x$axes
  # the last axis varies fastest
  grid <- rev(expand.grid(rev(columns), KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE))
  if (nrow(grid) != nrow(figures)) return(figures)
  cbind(grid, figures)
}

print.sulq_plan <- function(x, ...) {
  cat(sprintf("<plan of %d questions, %s>\n", nrow(x$lines), credits_text(x$credits)))
  print(x$lines, row.names = FALSE, right = FALSE)
  if (!isTRUE(x$affordable)) cat("more than is left for you\n")
  invisible(x)
}

as.data.frame.sulq_plan <- function(x, row.names = NULL, optional = FALSE, ...) x$lines

print.sulq_receipt <- function(x, ...) {
  cat(sprintf("<receipt %.0f of %s, table %s>\n", x$number, x$body$analyst, x$body$table))
  invisible(x)
}

# Where the columns of a bar were taken away, the rest is a plain data frame.
print.sulq_result <- function(x, ...) {
  bars <- attr(x, "bars")
  whole <- vapply(bars, function(name) {
    all(c(name, paste0(name, c("_low", "_high"))) %in% names(x))
  }, NA)
  frame <- as.data.frame(unclass(x)[names(x)], optional = TRUE)
  names(frame) <- names(x)
  if (!all(whole)) {
    print(frame, row.names = FALSE)
    return(invisible(x))
  }
  for (name in bars) {
    frame[[name]] <- mapply(bar, x[[name]], x[[paste0(name, "_low")]], x[[paste0(name, "_high")]])
  }
  shown <- frame[setdiff(names(frame), c(paste0(bars, "_low"), paste0(bars, "_high")))]
  for (name in setdiff(names(shown), bars)) {
    shown[[name]] <- ifelse(is.na(shown[[name]]), "NULL", as.character(shown[[name]]))
  }
  print(utils::head(shown, 60L), row.names = FALSE, right = TRUE)
  if (nrow(shown) > 60L) cat(sprintf("and %d rows more\n", nrow(shown) - 60L))
  if (length(bars)) {
    cat(sprintf("[low, high] holds the true value at %s; %s\n", percent(attr(x, "confidence")),
                credits_text(attr(x, "credits"))))
  }
  notes <- attr(x, "notes")
  if (length(notes)) cat(paste0(notes, "\n"), sep = "")
  invisible(x)
}
