from streamlearn.errors import BadEvent
from streamlearn.stream.text_decoder import TextDecoder

class VWDecoder(TextDecoder):
    def bad_value(self, name: bytes, rest: bytes) -> BadEvent: ...
