"""S3's protocol: requests for objects and listings, the credentials of requests, errors."""
