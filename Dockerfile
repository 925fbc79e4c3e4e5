# The CPU image: docker build -t sheaf . && docker run -p 8000:8000 sheaf
# For both architectures: docker buildx build --platform linux/amd64,linux/arm64 -t sheaf .
# `npm run prove -- images` builds and runs it.

FROM node:26-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages/sheaf/package.json packages/sheaf/
COPY packages/sheaf-server/package.json packages/sheaf-server/
RUN npm ci
COPY scripts scripts
COPY packages packages
RUN npm run build
# Leave what serves: no compiler, no linters, no binaries of other systems and architectures.
RUN npm prune --omit=dev && cd node_modules/onnxruntime-node/bin/napi-v6 && rm -rf darwin win32 \
  && find linux -mindepth 1 -maxdepth 1 ! -name "$(node -p process.arch)" -exec rm -r {} + \
  && find ../../../tokenizers -name "*.node" ! -name "*.linux-$(node -p process.arch)-gnu.node" -delete

FROM node:26-slim
# Inside a container 127.0.0.1 is reached by nobody else.
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8000
# Sheaf turns the telemetry of ONNX Runtime off itself; this covers whatever else runs in the container.
ENV ORT_DISABLE_TELEMETRY=1
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/packages packages
USER node
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# docker run sheaf tune mlp runs another command.
ENTRYPOINT ["/app/packages/sheaf-server/bin/sheaf.js"]
CMD ["serve"]
