test_that("an address is read with its table and its prefix", {
  found <- sulq:::read_address("https://host:8443/prefix/v1/tables/people")
  expect_equal(found$base, "https://host:8443/prefix")
  expect_equal(found$table, "people")
  expect_null(sulq:::read_address("http://127.0.0.1:8765")$table)
  expect_true(sulq:::read_address("http://[::1]:80/people")$loopback)
  expect_error(sulq:::read_address("host/people"), "https://host/people")
  expect_error(sulq:::read_address("https://user:word@host/people"), "want an address")
})

test_that("a token is not sent in the clear, and not shown", {
  expect_error(sulq_connect("http://example.org/people", token = "sulq_x"), "neither https",
               class = "sulq_refused")
  expect_error(sulq_connect("https://example.org/people", token = ""), "no token")
  server <- sulq:::new_server("https://example.org/people", "sulq_secret", 1, 0, NULL, FALSE)
  expect_false(any(grepl("sulq_secret", utils::capture.output(str(server)))))
})

test_that("a connection spends only under a name", {
  expect_error(sulq_connect("https://example.org/people", token = "t", credits = 3), "both or neither")
  expect_error(sulq_connect("https://example.org/people", token = "t", purpose = "p"), "both or neither")
})

test_that("nobody there is said so", {
  expect_error(sulq_connect("http://127.0.0.1:9/people", token = "t", retries = 0, timeout = 2),
               "is the server running", class = "sulq_unreachable")
})
