"""What an S3 storage offers beside its files.

`address.py`: bucket and service, as the variables of AWS name them. `links.py`: signed links to download and upload
single objects. `orphaned_parts.py`: parts of uploads that no process will complete.
"""
