/** A program that Crucible needs on a developer's machine and gets there by itself: what it is, and where to have it from. */
export interface Program<Version extends { version: string }> {
  /** The executable's name, and that of its folder in the cache and in `tools/`. */
  name: string
  /** For people: `Temporal server`. */
  title: string
  /** The version that is installed when none is found; `tools/<name>/go.mod` names the same. */
  version: string
  /** Asks an executable what it is. Throws when it cannot be run or is something else. */
  askVersion(path: string): Promise<Version>
  /** The official release for a platform in the words of `process.platform` and `process.arch`, where there is one. */
  releaseFor(platform: string, arch: string): Release | undefined
  /** How it is built from the Go module in `tools/<name>`. */
  build: GoBuild
}

export interface Release {
  url: string
  /** Of the archive, as published with the release. */
  sha256: string
  /** Where in the archive the executable is. */
  file: string
}

export interface GoBuild {
  package: string
  /** For Go's linker, beside `-s -w`. */
  linkerFlags: string
}
