#!/bin/sh
# Install the system programs that the full test suite uses. For Debian and its relatives, as root.
set -eu
wanted=""
command -v java >/dev/null || wanted="$wanted openjdk-17-jre-headless"
command -v javac >/dev/null || wanted="$wanted openjdk-17-jdk-headless"
[ -e /usr/share/java/postgresql.jar ] || wanted="$wanted libpostgresql-jdbc-java"
command -v psql >/dev/null || wanted="$wanted postgresql-client"
command -v chromium >/dev/null || wanted="$wanted chromium"
command -v curl >/dev/null || wanted="$wanted curl"
command -v openssl >/dev/null || wanted="$wanted openssl"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || wanted="$wanted postgresql"

# What looks for barriers in pages. It is of another licence, and large, so it is no part of this.
programs="$(dirname "$0")/.programs"
if [ ! -e "$programs/axe.min.js" ]; then
  if command -v npm >/dev/null; then
    mkdir -p "$programs"
    (cd "$programs" && npm pack --silent axe-core@4.14.1 >/dev/null &&
      tar -xzf axe-core-4.14.1.tgz --strip-components=1 package/axe.min.js && rm axe-core-4.14.1.tgz)
  else
    wanted="$wanted npm"
    echo "setup-system: run it once more when npm is there, for axe-core." >&2
  fi
fi

if [ -z "$wanted" ]; then
  echo "setup-system: everything is there already."
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "setup-system knows Debian's apt-get only. Install by hand:$wanted" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "setup-system needs root to install:$wanted. Try: sudo make setup-system" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
# shellcheck disable=SC2086  # a list of package names
apt-get install --yes --no-install-recommends $wanted
