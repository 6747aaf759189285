"""`python -m clients.generator` writes the modules."""

from clients.generator.write import write_models

if __name__ == "__main__":
    write_models()
