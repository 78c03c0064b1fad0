"""`python -m streamlearn` is the command `streamlearn`."""

from streamlearn.cli.main import process

if __name__ == "__main__":
    process()
