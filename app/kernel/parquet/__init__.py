"""Stored Parquet files as readers outside get them: with field ids, and without the columns that they may not see.

    exchange          what of a file is seen, the digest of that, and the size of the served file
    exchanged_footer  the footer of the served file, and which ranges of the stored one are served
    exchanged_file    any range of the served file
    schema_elements   the schema in a footer, with ids and without hidden columns
    column_chunks     the row groups in a footer, without hidden columns
    compact           the encoding of footers

Pages are not decoded: those that are served are copied, and zeros are served for the others.
"""
