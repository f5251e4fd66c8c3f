library(testthat)
library(sulq)

test_check("sulq")
