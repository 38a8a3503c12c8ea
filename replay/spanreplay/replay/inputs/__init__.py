"""What others recorded, out of files, folders and back ends, as span records; with what each lost on its way."""
