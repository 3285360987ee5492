/** S3 allows this many parts per object. */
const PARTS_MAX = 10_000

/** The bytes of each part but the last of an object of this size: as few as wanted, unless that makes too many parts. */
export function partBytesOf(sizeBytes: number, wantedBytes: number): number {
  return Math.max(wantedBytes, Math.ceil(sizeBytes / PARTS_MAX))
}
