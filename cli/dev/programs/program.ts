/** A program that Crucible needs on a developer's machine and installs if necessary: its name, version and sources. */
export interface Program<Version extends { version: string }> {
  /** The executable's name, and that of its folder in the cache and in `tools/`. */
  name: string
  /** Title for people: `Temporal server`. */
  title: string
  /** The version to install when none is found; `tools/<name>/go.mod` names the same. */
  version: string
  /** Asks an executable for its version. Throws if it cannot run or is another program. */
  askVersion(path: string): Promise<Version>
  /** The official release for a platform, as `process.platform` and `process.arch` name it; `undefined` without one. */
  releaseFor(platform: string, arch: string): Release | undefined
  /** How it is built from the Go module in `tools/<name>`. */
  build: GoBuild
}

export interface Release {
  url: string
  /** Digest of the archive, as published with the release. */
  sha256: string
  /** Path of the executable in the archive. */
  file: string
}

export interface GoBuild {
  package: string
  /** Flags for Go's linker, in addition to `-s -w`. */
  linkerFlags: string
}
