"""HTTP: shares, their recipients, and the credentials of recipients."""
