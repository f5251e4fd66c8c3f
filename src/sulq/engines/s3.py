"""A GET from S3, signed with the keys of the environment (AWS Signature Version 4).

AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN     without them: unsigned
AWS_REGION or AWS_DEFAULT_REGION                                us-east-1 if unset
AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL                         of other stores than Amazon's
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, unquote, urlsplit

NOTHING_SENT = hashlib.sha256(b"").hexdigest()


def s3_request(
    url: str, environment: Mapping[str, str], now: datetime | None = None
) -> tuple[str, dict[str, str]]:
    """The address of s3://bucket/key, and the headers to ask with."""
    given = urlsplit(url)
    bucket, key = given.netloc, unquote(given.path)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    path = quote(key, safe="/-_.~")
    if endpoint or "." in bucket:  # a dot in the name fits no certificate
        server = (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/")
        address = f"{server}/{bucket}{path}"
    else:
        address = f"https://{bucket}.s3.{region}.amazonaws.com{path}"
    secret = environment.get("AWS_SECRET_ACCESS_KEY")
    identity = environment.get("AWS_ACCESS_KEY_ID")
    if not secret or not identity:
        return address, {}
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"x-amz-content-sha256": NOTHING_SENT, "x-amz-date": stamp}
    if token := environment.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    signed = {"host": urlsplit(address).netloc, **headers}
    return address, headers | {
        "authorization": authorization(urlsplit(address).path, signed, region, identity, secret)
    }


def authorization(
    path: str, headers: Mapping[str, str], region: str, identity: str, secret: str
) -> str:
    """The header that proves who asks; `headers` are in lower case and hold x-amz-date."""
    stamp = headers["x-amz-date"]
    names = sorted(headers)
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in names)
    listed = ";".join(names)
    asked = f"GET\n{path}\n\n{lines}\n{listed}\n{NOTHING_SENT}"
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    told = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    proof = hmac.digest(key, told.encode(), "sha256").hex()
    return (
        f"AWS4-HMAC-SHA256 Credential={identity}/{scope},SignedHeaders={listed},Signature={proof}"
    )
