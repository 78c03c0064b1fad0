from typing import final

@final
class IncomingEvents: ...
