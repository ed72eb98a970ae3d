#!/bin/sh
# Builds the console and prints the folder in which it stands, for cargo's QUELEA_CONSOLE_DIST.
#
#     console/build.sh            without Node.js, or without what npm brings, says so and prints nothing
#     console/build.sh --check    checks types instead, and fails if they are wrong
#
# Nothing is written into the checkout: what npm installs and what is built stand in ${QUELEA_CACHE:-~/.cache/quelea},
# under the hash of what they are made of.
set -u
here=$(cd "$(dirname "$0")" && pwd)

give_up() {
    echo "The console is not built, / will show a plain page: $1" >&2
    [ "$check" ] && exit 1
    exit 0
}

check=
[ "${1:-}" = --check ] && check=--check
command -v node >/dev/null && command -v npm >/dev/null || give_up "Node.js and npm are not here"
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit((a === 20 && b >= 19) || (a === 22 && b >= 12) || a > 22 ? 0 : 1)' ||
    give_up "it needs Node.js 20.19, 22.12 or later, this is $(node --version)"
node "$here/build.js" $check || give_up "the build failed, see above"
