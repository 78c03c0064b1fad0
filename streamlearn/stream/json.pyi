from streamlearn.stream.decoder import Decoder
from streamlearn.stream.keys import Keys

class JSONDecoder(Decoder):
    @property
    def keys(self) -> Keys: ...
