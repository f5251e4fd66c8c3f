form <- function(question) jsonlite::fromJSON(sulq:::to_json(question$form), simplifyVector = FALSE)
rows <- function(question) form(question)$query$rows

test_that("a name is a column, and a value of the program stands in .( )", {
  age <- 40
  expect_equal(rows(sulq_question(count(where = age >= .(age)))),
               list("le", list("num", "40"), list("col", "age")))
  expect_equal(rows(sulq_question(count(where = `a b` == "x"))),
               list("eq", list("col", "a b"), list("text", "x")))
  expect_equal(rows(sulq_question(count(where = col(.("a b")) == "x")))[[1]], "eq")
})

test_that("every operation has its form", {
  one <- function(expr, ...) expect_equal(sulq:::form_of(expr, globalenv()), list(...))
  a <- list("col", "a")
  one(quote(a + 1 + b), "add", a, list("num", "1"), list("col", "b"))
  one(quote(a - 2), "add", a, list("num", "-2"))
  one(quote(-a), "negate", a)
  one(quote(a > 1), "lt", list("num", "1"), a)
  one(quote(!(a < 1)), "not", list("lt", a, list("num", "1")))
  one(quote(is.na(a)), "is_null", a)
  one(quote(a %in% c("x", "y")), "among", a, list("text", "x"), list("text", "y"))
  one(quote(clip(a, 0, 1e5)), "clip", a, list("num", "0"), list("num", "100000"))
  one(quote(ifelse(b, a, NA)), "choose", list("col", "b"), a, list("null"))
  one(quote(a >= as.Date("2020-01-31")), "le", list("date", "2020-01-31"), a)
  one(quote(between(a, 1, 2)), "and", list("le", list("num", "1"), a), list("le", a, list("num", "2")))
})

test_that("statistics ask for their sums", {
  expect_equal(form(sulq_question(mean(income)))$query$terms,
               list(list("num", "1"), list("centred", list("col", "income"))))
  expect_equal(rows(sulq_question(mean("income", where = smoker)))[[1]], "and")
  quantiles <- form(sulq_question(quantiles(age, 0.5)))
  expect_equal(quantiles$shares, list(0.5))
  expect_equal(quantiles$query$groups[[1]]$bins, 1024)
  expect_true(quantiles$query$groups[[1]]$tree)
  by <- form(sulq_question(histogram(age, city, edges = list(age = c(0, 18, 65)))))$query$groups
  expect_equal(length(by[[1]]$edges), 3)
  expect_null(by[[2]]$edges)
  expect_equal(form(sulq_question(count_persons(where = smoker)))$query$clip[[2]], list("num", "1"))
})

test_that("a question can be kept and shown", {
  old <- sulq_question(count(where = age >= 65))
  expect_identical(sulq_question(old), old)
  expect_output(print(old), "<question count(where = age >= 65)>", fixed = TRUE)
})

test_that("what is not in the language is refused with what there is", {
  expect_error(sulq_question(count(where = sqrt(age) > 2)), "sqrt() is not in the language", fixed = TRUE)
  expect_error(sulq_question(median(age)), class = "sulq_invalid_query")
  expect_error(sulq_question(total()), "wants a column")
  expect_error(sulq_question(quantiles(age, 2)), "shares must be numbers")
  expect_error(sulq_question(count(where = age %in% c())), "at least one value")
  expect_error(sulq_question(histogram()), "at least one column")
  expect_error(sulq_question(count(sort = age)), "count: unused argument")
  expect_error(sulq_question(count(where = age > .(Inf))), "finite")
})
