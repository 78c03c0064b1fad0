"""`python -m streamlearn` is the command `streamlearn`."""

from streamlearn.cli import process

if __name__ == "__main__":
    process()
