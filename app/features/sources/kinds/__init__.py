"""The kinds of sources, by name.

files, http_pages, kafka, changes    objects of a storage, pages of an API, topics, the feed of another dataset
sql_rows                             a query of a database; sql_postgres, sql_mysql: its dialects
sql_serve, sql_frames                what the process does that reads the database, and its answer; the process
                                     gets the password over a socket (app/infra/outbound/limited_process)
positions                            what a position of each kind may be
"""
