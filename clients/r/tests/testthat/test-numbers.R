test_that("numbers are sent as they are spelled", {
  expect_equal(sulq:::ratio(0.1), "1/10")
  expect_equal(sulq:::ratio(1e5), "100000")
  expect_equal(sulq:::ratio(-2.5), "-25/10")
  expect_equal(sulq:::ratio(0), "0")
  expect_equal(sulq:::ratio(100L), "100")
  for (number in c(1 / 3, pi, 1e-7, 2^53, 123456.789)) {
    expect_equal(sulq:::read_ratio(sulq:::ratio(number)), number, tolerance = 0)
  }
  expect_error(sulq:::ratio(1e300), "too large")
})

test_that("digits end where the noise begins, and intervals round outwards", {
  expect_equal(sulq:::bar(6949, 6831, 7066), "6,949 [6,831, 7,066]")
  expect_equal(sulq:::bar(39812.3, 36741.9, 42799.8), "39,800 [36,700, 42,800]")
  expect_equal(sulq:::bar(10075, 10075, 10075), "10,075")
  expect_equal(sulq:::bar(NA, 0, 1e5), "unknown [0, 100,000]")
  expect_equal(sulq:::bar(5, NA, NA), "5 [unbounded, unbounded]")
  expect_equal(sulq:::bar(0.8123, 0.8012, 0.8234), "0.8123 [0.8012, 0.8234]")
})

test_that("credits paid round up, credits left round down", {
  expect_equal(sulq:::credits_text(1), "1 credit")
  expect_equal(sulq:::credits_text(2.80935), "2.8094 credits")
  expect_equal(sulq:::credits_text(2.80935, left = TRUE), "2.8093 credits")
  expect_equal(sulq:::credits_text(0), "0 credits")
})
