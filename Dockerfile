# Crucible's workers and command line, for docker-compose.yml. glibc: the Temporal SDK does not run on musl.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /opt/crucible
COPY package.json package-lock.json .npmrc ./
COPY packages/small-cloud/package.json packages/small-cloud/
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev

FROM node:24.21.0-bookworm-slim
# Python for the machines of the local backend; certificates for what their jobs fetch.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /opt/crucible
COPY --from=build /opt/crucible/package.json ./
COPY --from=build /opt/crucible/node_modules node_modules
COPY --from=build /opt/crucible/dist dist
COPY --from=build /opt/crucible/examples examples
ENTRYPOINT ["node", "/opt/crucible/dist/cli/main.js"]
CMD ["--help"]
