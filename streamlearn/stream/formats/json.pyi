from streamlearn.stream.formats.decoder import Decoder
from streamlearn.stream.formats.keys import Keys

class JSONDecoder(Decoder):
    @property
    def keys(self) -> Keys: ...
