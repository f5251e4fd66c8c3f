"""Exit with 0 if the server in this container answers GET /healthz, else with 1.

It asks http://127.0.0.1:8765, or what SULQ_HEALTH names: with a certificate of its own the server
is at https://127.0.0.1:8765. Over loopback no certificate is checked.
"""

from __future__ import annotations

import os
import ssl
import sys
import urllib.request

ADDRESS = "http://127.0.0.1:8765"


def healthy(address: str) -> bool:
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unchecked)
    )
    try:
        with opener.open(f"{address}/healthz", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if healthy(os.environ.get("SULQ_HEALTH", ADDRESS)) else 1)
