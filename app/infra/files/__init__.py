"""Parquet and Arrow files on object storage. Paths are written once; every file has a checksum.

    storage, ports, checksums                  local disk and S3 behind `ObjectStorage`; XXH3-128 of files
    file_parts                                 parts of files as bytes, without waiting for a disk where possible
    parquet_file, memory_size, statistics      base and changelog files: write, verify, read the row groups needed
    changelog_merge                            one changelog file of several
    staged_file, received_body                 input of writes, already split by file group; request bodies
    log_file, deletion_vector_file             logs of merge_on_read tables; which rows of a data file are deleted
    quarantine_file, export_file               bad records; result files of exports and reads
    data_sink, ordered_sink                    the data files that a task writes; the same in the order of a clustering
    lookups                                    which file has a key, and at which position
    s3                                         links to single objects; parts of unfinished uploads
    slices                                     the live rows of a file group: read, merged, sorted, compared

A path that a commit names is durable: a closed file and the entries of its folders are synced first.

    with storage.create("t/d/data/0-….parquet") as file:    # exclusive; an exception leaves no file
        file.write(…)
"""
