/** Parts of a beat that only people and views read. */

/** How far the runner is with saving files into the store. */
export interface UploadProgress {
  what: 'artifacts' | 'checkpoint'
  filesDone: number
  filesTotal: number
  /** Sent to the store. */
  bytesDone: number
  bytesTotal: number
  /** Bytes hashed, before they are sent; missing if hashing and sending are one step. */
  bytesRead?: number
}

export interface GpuUse {
  index: number
  name: string
  utilizationPercent: number
  memoryUsedMiB: number
  memoryTotalMiB: number
}
