#!/bin/bash
# Lint and build both images, start containers/compose.yaml as docs/operations/service.md says, with a certificate of
# its own, and use it: bash .ci/containers.sh. Needs Docker with compose, and the ports 80 and 443.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -e containers/.env ]; then
    echo "containers/.env: exists; expected a checkout without settings" >&2
    exit 1
fi

for image in service evaluation; do
    docker run --rm --interactive hadolint/hadolint:v2.12.0-alpine hadolint --failure-threshold warning - \
        < "containers/$image/Dockerfile"
done
docker build --file containers/evaluation/Dockerfile --tag giccs-evaluation .
docker run --rm --read-only --tmpfs /tmp --user "$(id -u):$(id -g)" --network none \
    giccs-evaluation eval baseline:char-ngram --data giccs-sample -o /tmp/results

certificates=$(mktemp -d)
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=work.example.org \
    -addext subjectAltName=DNS:work.example.org,DNS:questions.example.org \
    -keyout "$certificates/privkey.pem" -out "$certificates/fullchain.pem" 2> /dev/null
# the commands of the page that write settings and secrets
commands=$(sed -n '/not run: tests\/test_containers.py/,/^```$/s/^\$ //p' docs/operations/service.md)
(eval "set -e; ${commands//\/etc\/letsencrypt\/live\/work.example.org/$certificates}")

cd containers
trap 'docker compose logs; docker compose down --volumes' EXIT
docker compose config --quiet
docker compose up --build --detach --wait
ask() {
    curl --silent --show-error --fail --retry 5 --retry-connrefused --cacert "$certificates/fullchain.pem" \
        --resolve work.example.org:443:127.0.0.1 --resolve work.example.org:80:127.0.0.1 "$@"
}
ask https://work.example.org/healthz
test "$(ask --output /dev/null --write-out '%{http_code}' http://work.example.org/)" = 308
db=postgresql+psycopg://giccs@database/giccs
docker compose exec -T service mturk-hits invite --workers 1 --db "$db" --site-url https://work.example.org
docker compose exec -T database pg_dump --username=giccs --format=custom giccs > "$certificates/giccs.dump"
test -s "$certificates/giccs.dump"
docker compose stop service
docker compose run --rm service migrate --db "$db"
