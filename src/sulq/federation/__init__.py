"""Split tables as one Oracle: rows, or columns, that live with several owners."""

from sulq.federation.columns import ColumnSplit as ColumnSplit
from sulq.federation.columns import split_columns as split_columns
from sulq.federation.rows import RowSplit as RowSplit
from sulq.federation.secure import SecureRowSplit as SecureRowSplit
from sulq.federation.secure import split_rows as split_rows
from sulq.shares import Partners as Partners
