from streamlearn.stream.formats.typed import TypedDecoder

class ArrowDecoder(TypedDecoder):
    def check_columns(self) -> None: ...
