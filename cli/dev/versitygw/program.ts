import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Program, Release } from '../programs/program'

/** The S3 server to download or build when none is found; `tools/versitygw/go.mod` names the same. */
const VERSITYGW_VERSION = '1.8.0'
const RELEASES_URL = 'https://github.com/versity/versitygw/releases/download'

/** SHA-256 of the archives of that version, by platform, as published with the release in its `checksums.txt`. */
const RELEASE_SHA256: Readonly<Record<string, string>> = {
  Darwin_arm64: '4953096f65a9c0d62ab184fb6b2ba7c2435229205cf00a56cb62cd4bf6b216ca',
  Darwin_x86_64: '104bd978e80ef0173554cfd8630ccc5bac24b00da440510b60365a3b6b6ab134',
  Linux_arm64: 'b34051d33f5a9c457f790896acb7bd7d7e15ad8d92efb70616b924f37e401910',
  Linux_x86_64: '2ba2c734d10d2c4e651d03182cb4b246656bc735a2f282db7b0b73fba6073467',
}

const VERSION_TIMEOUT_MS = 20_000

/** A real S3 server in one file, under the small cloud. */
export const VERSITYGW: Program<{ version: string }> = {
  name: 'versitygw',
  title: 'S3 server',
  version: VERSITYGW_VERSION,
  askVersion,
  releaseFor,
  build: {
    package: 'github.com/versity/versitygw/cmd/versitygw',
    linkerFlags: `-X main.Version=v${VERSITYGW_VERSION}`,
  },
}

function releaseFor(platform: string, arch: string): Release | undefined {
  const system = { linux: 'Linux', darwin: 'Darwin' }[platform]
  const name = `${system}_${arch === 'x64' ? 'x86_64' : arch}`
  const sha256 = RELEASE_SHA256[name]
  if (sha256 === undefined) return undefined
  const folder = `versitygw_v${VERSITYGW_VERSION}_${name}`
  return {
    url: `${RELEASES_URL}/v${VERSITYGW_VERSION}/${folder}.tar.gz`,
    sha256,
    file: `${folder}/versitygw`,
  }
}

async function askVersion(path: string): Promise<{ version: string }> {
  const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: VERSION_TIMEOUT_MS })
  const version = /^Version *: *v?(\d+\.\d+\.\d+\S*)$/m.exec(stdout)?.[1]
  if (version === undefined) {
    throw new Error(`it is not versitygw: --version printed "${stdout.trim().slice(0, 80)}"`)
  }
  return { version }
}
