"""Use cases of the Iceberg catalogue.

table_form     what manifests and plans of a table are rendered from, beside its files
manifests      manifests and manifest lists of snapshots
delete_files   deleted rows as Puffin files, or as files of positions
trees          both as objects below the location of a table
plans          scans that the service plans
"""
