# Functions of one row, written as R. A name is a column; a value of your program stands in .( ).

OPERATORS <- c("+" = "add", "*" = "multiply", "/" = "divide", "<" = "lt", "<=" = "le",
               "==" = "eq", "!=" = "ne", "&" = "and", "&&" = "and", "|" = "or", "||" = "or",
               "!" = "not", abs = "abs", pmin = "least", min = "least", pmax = "greatest",
               max = "greatest", is.na = "is_null", clip = "clip", ifelse = "choose",
               coalesce = "coalesce", like = "like")
FLIPPED <- c(">" = "lt", ">=" = "le")
FLAT <- c("add", "multiply", "and", "or", "least", "greatest")
ARITY <- list(divide = 2L, lt = 2L, le = 2L, eq = 2L, ne = 2L, not = 1L, abs = 1L, is_null = 1L,
              clip = 3L, choose = 3L, coalesce = 2L, like = 2L)

# The nested list that a server reads, of an expression that was not evaluated.
form_of <- function(expr, env) {
  if (is.symbol(expr)) {
    name <- as.character(expr)
    if (!nzchar(name)) abort("an argument is empty; write a column or a value", "invalid_query")
    return(list("col", name))
  }
  if (!is.call(expr)) return(literal(expr))
  name <- call_name(expr)
  given <- lapply(as.list(expr)[-1L], function(part) part)
  parts <- function() lapply(unname(given), form_of, env = env)
  if (name == "(") return(form_of(given[[1L]], env))
  if (name == ".") return(literal(eval(given[[1L]], env)))
  if (name == "col") return(list("col", one_text(eval(unwrapped(given[[1L]]), env), "col")))
  if (name %in% c("as.Date", "as.POSIXct")) return(literal(eval(expr, env)))
  if (name == "between" && length(given) == 3L) {
    ends <- parts()
    return(list("and", list("le", ends[[2L]], ends[[1L]]), list("le", ends[[1L]], ends[[3L]])))
  }
  if (name == "%in%") {
    values <- lapply(plain_list(eval(unwrapped(given[[2L]]), env)), literal)
    if (!length(values)) abort("%in% wants at least one value, got none", "invalid_query")
    return(c(list("among", form_of(given[[1L]], env)), values))
  }
  if (name == "-") return(difference(given, env))
  if (name == "+" && length(given) == 1L) return(form_of(given[[1L]], env))
  if (name %in% names(FLIPPED)) return(c(list(FLIPPED[[name]]), rev(parts())))
  if (!name %in% names(OPERATORS)) {
    abort(sprintf(paste0(
      "%s() is not in the language of questions; there are + - * / comparisons, & | !, %%in%%,",
      " is.na, abs, pmin, pmax, clip, between, ifelse, coalesce, like, col; a value of your own",
      " stands in .( ), as in age > .(limit)"), name), "invalid_query")
  }
  operation(OPERATORS[[name]], parts(), name)
}

operation <- function(name, parts, typed = name) {
  wanted <- ARITY[[name]]
  if (length(parts) != (if (is.null(wanted)) max(2L, length(parts)) else wanted)) {
    abort(sprintf("%s takes %s operands, got %d", typed,
                  if (is.null(wanted)) "at least 2" else wanted, length(parts)), "invalid_query")
  }
  if (name %in% FLAT) { # nesting on the left is not depth
    parts <- do.call(c, lapply(parts, function(part) {
      if (identical(part[[1L]], name)) part[-1L] else list(part)
    }))
  }
  c(list(name), parts)
}

difference <- function(given, env) {
  parts <- lapply(unname(given), form_of, env = env)
  last <- parts[[length(parts)]]
  minus <- if (identical(last[[1L]], "num") && !startsWith(last[[2L]], "-") && last[[2L]] != "0") {
    list("num", paste0("-", last[[2L]]))
  } else {
    list("negate", last)
  }
  if (length(parts) == 1L) minus else operation("add", list(parts[[1L]], minus), "-")
}

literal <- function(value) {
  if (is.null(value) || (length(value) == 1L && is.atomic(value) && is.na(value) && !is.nan(value))) {
    return(list("null"))
  }
  if (length(value) != 1L || !is.atomic(value)) {
    abort(sprintf("one value is wanted here, got %s", shown(value)), "invalid_query")
  }
  if (inherits(value, "Date")) return(list("date", format(value, "%Y-%m-%d")))
  if (inherits(value, "POSIXct")) {
    return(list("datetime", format(value, "%Y-%m-%dT%H:%M:%S", tz = "UTC")))
  }
  if (is.factor(value)) value <- as.character(value)
  if (is.logical(value)) return(list("bool", value))
  if (is.numeric(value)) return(list("num", ratio(value)))
  if (is.character(value)) return(list("text", enc2utf8(value)))
  abort(sprintf("cannot use %s in a question; use a number, a text, TRUE, NA or a date",
                shown(value)), "invalid_query")
}

call_name <- function(call) {
  head <- call[[1L]]
  if (is.call(head) && identical(head[[1L]], as.name("::"))) head <- head[[3L]]
  if (is.symbol(head)) as.character(head) else ""
}

# What stands in .( ), or the expression as it is.
unwrapped <- function(expr) if (is.call(expr) && call_name(expr) == ".") expr[[2L]] else expr

# c(dates) keeps its class here: as.list of it does, lapply over it does not
plain_list <- function(values) if (is.list(values)) values else as.list(values)

one_text <- function(value, what) {
  if (!is.character(value) || length(value) != 1L || is.na(value) || !nzchar(value)) {
    abort(sprintf("%s wants a column's name as one text, got %s", what, shown(value)),
          "invalid_query")
  }
  enc2utf8(value)
}

# A column's name as text, or an expression.
column_or_form <- function(expr, env) {
  if (is.character(expr)) list("col", one_text(expr, "a question")) else form_of(expr, env)
}
