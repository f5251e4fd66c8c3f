# Statistics as the sums that they are read from.

RESOLUTION <- 1024L
ONE <- list("num", "1")

sulq_question <- function(question) read_question(substitute(question), parent.frame())

# A question as it was typed, or the value of a variable that holds one.
read_question <- function(expr, env) {
  if (is.call(expr) && call_name(expr) %in% names(BUILDERS)) {
    name <- call_name(expr)
    call <- match_arguments(expr, name)
    made <- BUILDERS[[name]](call, env)
    made$typed <- paste(trimws(deparse(expr, width.cutoff = 500L)), collapse = " ")
    return(structure(made, class = "sulq_question"))
  }
  found <- tryCatch(eval(expr, env), error = function(e) if (inherits(e, "sulq_error")) stop(e))
  if (!inherits(found, "sulq_question")) {
    abort(sprintf("want a question such as count(where = age >= 65), got %s; there are %s",
                  shown(expr), paste(names(BUILDERS), collapse = ", ")), "invalid_query")
  }
  found
}

SIGNATURES <- list(
  count = function(x, where) NULL,
  total = function(x, where) NULL,
  mean = function(x, where) NULL,
  variance = function(x, where) NULL,
  covariance = function(x, y, where) NULL,
  correlation = function(x, y, where) NULL,
  histogram = function(..., where, edges, other) NULL,
  cdf = function(x, edges, where) NULL,
  quantiles = function(x, shares, where) NULL,
  distribution = function(x, where, by, resolution) NULL,
  count_persons = function(where, by) NULL
)

match_arguments <- function(expr, name) {
  expr[[1L]] <- as.name(name)
  tryCatch(
    as.list(match.call(SIGNATURES[[name]], expr, expand.dots = FALSE))[-1L],
    error = function(e) abort(sprintf("%s: %s", name, conditionMessage(e)), "invalid_query")
  )
}

sums <- function(rows, terms, groups = list()) {
  list(sulq = 1L, rows = rows, terms = terms, groups = groups)
}

statistic <- function(kind, query, shares = list()) {
  list(form = list(kind = kind, query = query, shares = shares))
}

value_of <- function(call, name, env, kind) {
  if (is.null(call[[name]])) {
    abort(sprintf("%s wants a column or an expression as %s", kind, name), "invalid_query")
  }
  column_or_form(call[[name]], env)
}

# The rows where `where`, unless it is missing, and all further conditions are true.
rows_where <- function(call, env, ...) {
  parts <- c(if (!is.null(call$where)) list(form_of(call$where, env)), list(...))
  if (!length(parts)) return(list("bool", TRUE))
  if (length(parts) == 1L) parts[[1L]] else operation("and", parts)
}

group <- function(of, edges = NULL, bins = NULL, other = FALSE) {
  if (!is.null(edges)) {
    edges <- lapply(plain_list(edges), literal)
    if (length(edges) < 2L) abort("edges must be at least two numbers or dates", "invalid_query")
  }
  made <- list(of = of, edges = edges, bins = bins, other = isTRUE(other))
  if (is.null(bins)) made else c(made, list(tree = TRUE))
}

there <- function(x) list("not_null", x)
centred <- function(x) list("centred", x)
product <- function(x, y) centred(list("multiply", centred(x), centred(y)))

moments <- function(kind, pairs) function(call, env) {
  x <- value_of(call, "x", env, kind)
  terms <- c(list(ONE, centred(x)), if (pairs) list(product(x, x)))
  statistic(kind, sums(rows_where(call, env, there(x)), terms))
}

joint <- function(kind, squares) function(call, env) {
  x <- value_of(call, "x", env, kind)
  y <- value_of(call, "y", env, kind)
  terms <- c(list(ONE, centred(x), centred(y), product(x, y)),
             if (squares) list(product(x, x), product(y, y)))
  statistic(kind, sums(rows_where(call, env, there(x), there(y)), terms))
}

tree_of <- function(call, env, kind, resolution = RESOLUTION) {
  by <- if (is.null(call$by)) list() else lapply(grouping(call$by, env), group)
  tree <- group(value_of(call, "x", env, kind), bins = resolution)
  sums(rows_where(call, env), list(ONE), c(by, list(tree)))
}

# by = city, by = "city" or by = c(city, smoker)
grouping <- function(expr, env) {
  listed <- if (is.call(expr) && call_name(expr) == "c") as.list(expr)[-1L] else list(expr)
  lapply(unname(listed), column_or_form, env = env)
}

BUILDERS <- list(
  count = function(call, env) {
    counted <- if (!is.null(call$x)) there(column_or_form(call$x, env))
    conditions <- c(list(call, env), if (!is.null(counted)) list(counted))
    statistic("count", sums(do.call(rows_where, conditions), list(ONE)))
  },
  total = function(call, env) {
    x <- value_of(call, "x", env, "total")
    statistic("total", sums(rows_where(call, env), list(x)))
  },
  mean = moments("mean", FALSE),
  variance = moments("variance", TRUE),
  covariance = joint("covariance", FALSE),
  correlation = joint("correlation", TRUE),
  histogram = function(call, env) {
    columns <- lapply(unname(call[["..."]]), column_or_form, env = env)
    if (!length(columns)) abort("histogram needs at least one column", "invalid_query")
    edges <- eval(call$edges, env)
    if (!is.null(edges) && !is.list(edges) && length(columns) > 1L) {
      abort("with several columns give edges as list(column = c(...))", "invalid_query")
    }
    groups <- lapply(columns, function(of) {
      own <- if (is.list(edges)) edges[[of[[2L]]]] else edges
      group(of, own, other = eval(call$other, env))
    })
    statistic("histogram", sums(rows_where(call, env), list(ONE), groups))
  },
  cdf = function(call, env) {
    if (is.null(call$edges)) return(statistic("cdf", tree_of(call, env, "cdf")))
    of <- value_of(call, "x", env, "cdf")
    groups <- list(group(of, eval(call$edges, env)))
    statistic("cdf", sums(rows_where(call, env), list(ONE), groups))
  },
  quantiles = function(call, env) {
    shares <- eval(call$shares, env)
    if (!is.numeric(shares) || !length(shares) || anyNA(shares) || any(shares < 0 | shares > 1)) {
      abort(sprintf("shares must be numbers in [0, 1], got %s", shown(shares)), "invalid_query")
    }
    statistic("quantiles", tree_of(call, env, "quantiles"), as.list(as.numeric(shares)))
  },
  distribution = function(call, env) {
    cells <- if (is.null(call$resolution)) RESOLUTION else eval(call$resolution, env)
    statistic("distribution", tree_of(call, env, "distribution", as.integer(cells)))
  },
  count_persons = function(call, env) {
    groups <- if (is.null(call$by)) list() else lapply(grouping(call$by, env), group)
    query <- sums(rows_where(call, env), list(ONE), groups)
    query$clip <- list(list("num", "0"), ONE)
    statistic(if (length(groups)) "histogram" else "count", query)
  }
)
