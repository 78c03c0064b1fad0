"""What the name of a field indicates: numbers alone do not tell an id from a quantity."""

from __future__ import annotations

import re

CODES = re.compile(
    "ids?|uid|uuid|guid|pk|key|code|zip|zipcode|postcode|plz|hash|sku|ean|isbn|asin|ip|nbr|no"
    "|type|class|category|cat|group|segment|cluster"
)
# what ids are of: `user`, `userid`, `user_id`
THINGS = re.compile(
    "(user|customer|client|member|account|visitor|session|person|patient|student|employee"
    "|item|product|article|ad|advert|creative|banner|campaign|advertiser|publisher|placement"
    "|site|page|domain|app|device|store|shop|branch|vendor|seller|merchant|brand|partner"
    "|affiliate|city|region|state|country|county|district|neighborhood|location|station|sensor"
    "|machine|host|server|node|channel|source|order|ticket|event|request|transaction|driver"
    "|vehicle|route|player|team|movie|song|artist|author|hotel|genre|model|carrier|airline"
    "|airport)(id)?"
)
TIMES = re.compile("time|timestamp|ts|date|datetime|at|on|day|when|created|updated")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def parts(name: str) -> list[str]:
    """Return the words of a name, in lowercase.

    >>> parts("user.homeZipCode"), parts("PULocationID")
    (['user', 'home', 'zip', 'code'], ['pu', 'location', 'id'])
    """
    return [part.lower() for part in PART.findall(name)]


def means_id(name: str) -> bool:
    """Return whether a field of this name has ids or codes.

    >>> [one for one in ("user_id", "adId", "userid", "zip", "paid", "n_users") if means_id(one)]
    ['user_id', 'adId', 'userid', 'zip']
    """
    found = [part for part in parts(name) if not part.isdigit()]
    return bool(found) and bool(CODES.fullmatch(found[-1]) or THINGS.fullmatch(found[-1]))


def means_time(name: str) -> bool:
    """Return whether a field of this name has times.

    >>> [one for one in ("created_at", "eventTime", "ts", "format") if means_time(one)]
    ['created_at', 'eventTime', 'ts']
    """
    return any(TIMES.fullmatch(part) for part in parts(name))
