import type { Program, Release } from '../programs/program'
import { askVersion, TEMPORAL_CLI_VERSION, type TemporalVersion } from './version'

/** Location of the releases of Temporal's CLI. */
const RELEASES_URL = 'https://github.com/temporalio/cli/releases/download'

/** SHA-256 of the archives of TEMPORAL_CLI_VERSION, by platform, as published with that release in its `checksums.txt`. */
const RELEASE_SHA256: Readonly<Record<string, string>> = {
  darwin_amd64: '48cdd6c84c56e27ae8e4d9a47052b89289a9c552dee029b49dd312c6fb72873f',
  darwin_arm64: '41e0425378fcb4fb5766340b97435e20fe47bbff2d7bf644ec2d51f7662b7c56',
  linux_amd64: '09a0326a51db84d02735e53542b9ebd8c4758daf47482a9ab0abce15844e60d5',
  linux_arm64: '6c57c352d52fc3df34412376fd9ba6f74b7e3ace8e426e6cba8600156d36a145',
}

/** The Temporal CLI, which contains the server. */
export const TEMPORAL: Program<TemporalVersion> = {
  name: 'temporal',
  title: 'Temporal server',
  version: TEMPORAL_CLI_VERSION,
  askVersion,
  releaseFor,
  build: {
    package: 'github.com/temporalio/cli/cmd/temporal',
    linkerFlags: `-X github.com/temporalio/cli/internal/temporalcli.Version=${TEMPORAL_CLI_VERSION}`,
  },
}

/** The release archive for a platform, as `process.platform` and `process.arch` name it; `undefined` without one. */
export function releaseFor(platform: string, arch: string): Release | undefined {
  const name = `${platform}_${arch === 'x64' ? 'amd64' : arch}`
  const sha256 = RELEASE_SHA256[name]
  if (sha256 === undefined) return undefined
  const version = TEMPORAL_CLI_VERSION
  return {
    url: `${RELEASES_URL}/v${version}/temporal_cli_${version}_${name}.tar.gz`,
    sha256,
    file: 'temporal',
  }
}
