reply <- list(
  columns = list(list(name = "city", is_key = TRUE), list(name = "n", is_key = FALSE)),
  rows = list(list("Oslo", list(value = 1890, low = 1620, high = 2160)),
              list(NULL, list(value = -15, low = 0, high = 118))),
  credits = 1, confidence = 0.95, notes = list("a note"), receipts = list(13)
)

test_that("a result is a data frame that carries its intervals", {
  found <- sulq:::result_frame(reply)
  expect_equal(names(found), c("city", "n", "n_low", "n_high"))
  expect_equal(found$city, c("Oslo", NA))
  expect_equal(found$n_high, c(2160, 118))
  expect_equal(attr(found, "credits"), 1)
  expect_output(print(found), "Oslo 1,890 [1,620, 2,160]", fixed = TRUE)
  expect_output(print(found), "NULL", fixed = TRUE)
  expect_output(print(found), "a note", fixed = TRUE)
  expect_output(print(found[c("city", "n")]), "1890")
})

test_that("an answer with several axes is tidy", {
  answer <- sulq:::new_answer(list(
    kind = "histogram", value = list(list(1, 2), list(3, 4)), low = list(list(0, 1), list(2, 3)),
    high = list(list(2, 3), list(4, 5)), standard_error = list(list(1, 1), list(1, 1)),
    confidence = 0.95, keys = list(list("Oslo", "Paris"), list(FALSE, TRUE)),
    axes = list("city", "smoker"), credits = 2, note = ""
  ), list(typed = ""))
  frame <- as.data.frame(answer)
  expect_equal(frame$city, c("Oslo", "Oslo", "Paris", "Paris"))
  expect_equal(frame$smoker, c(FALSE, TRUE, FALSE, TRUE))
  expect_equal(frame$value, 1:4)
  expect_output(print(answer), "4 values by city and smoker")
})

test_that("the text that is signed is sorted ASCII", {
  text <- sulq:::canonical_json(list(b = "\u00e9\"\U0001F600", a = list(1L, "x", NULL)))
  expect_equal(text, "{\"a\":[1,\"x\",null],\"b\":\"\\u00e9\\\"\\ud83d\\ude00\"}")
})

test_that("a refusal says its price and carries its reason", {
  refused <- sulq:::problem(list(code = "price_changed", detail = "d", about = list(credits = "3/2")))
  expect_match(conditionMessage(refused), "this costs 1.5 credits")
  invalid <- sulq:::problem(list(code = "invalid_query", detail = "no column 'x'", hint = "look",
                                 reason = "no_column", credits_spent = 0))
  expect_s3_class(invalid, "sulq_invalid_query")
  expect_equal(conditionMessage(invalid), "no column 'x'; look")
  expect_equal(invalid$reason, "no_column")
})
