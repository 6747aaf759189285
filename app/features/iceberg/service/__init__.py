"""Use cases of the Iceberg catalogue.

loaded_tables    tables with keys for their files
rendered_tables  metadata documents, rendered once for each state of a table
response_pieces  bodies of which a large part is compressed once
objects          rendered objects below the location of a table
metadata_tree    metadata documents, manifest lists and manifests as such objects
table_form       what manifests and plans of a table are rendered from, beside its files
blocks           blocks of files, with the counts of their commits
manifests        manifests and manifest lists of snapshots
visible_files    the files of a version for who sees a part of the dataset
part_manifests   manifests of these files
delete_files     deleted rows as Puffin files, or as files of positions
deletes_tree     these as objects below the location of a table
plans            scans that the service plans
"""
