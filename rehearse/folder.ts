import { lstatSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { OutsideFile } from './seen'

/** Limit on the entries that are read: a change is nearly always among the first. */
const ENTRIES_MAX = 5_000
/** Files that grow constantly: never the start of a save (docs/reference/runner-protocol-checkpoints.md, "Records"). */
export const RECORD = /\.(?:log|jsonl|csv|tsv)$|events\.out\.tfevents\./
/** Extensions of saved models. */
const SAVED =
  /\.(?:pt|pth|ckpt|bin|safetensors|h5|hdf5|keras|npz|npy|pkl|pickle|joblib|msgpack|ubj|model|cbm|distcp|tar)$/i
const LARGE_BYTES = 1024 * 1024
const NOT_OURS = new Set(['.git', 'node_modules', '__pycache__', 'site-packages', 'wandb', 'mlruns'])

interface Entry {
  path: string
  sizeBytes: number
  modifiedAtMs: number
}

/** Stays equal while nothing in a folder is written, renamed or deleted; records do not count. */
export function signatureOf(folder: string): string {
  return entriesOf(folder)
    .filter(({ path }) => !RECORD.test(path))
    .map(({ path, sizeBytes, modifiedAtMs }) => `${path} ${sizeBytes} ${modifiedAtMs}`)
    .join('\n')
}

/** Files written since a given time in a working directory, outside its checkpoint directory, that look like checkpoints. */
export function savedOutside(work: string, checkpoints: string, sinceMs: number): OutsideFile[] {
  return entriesOf(work, checkpoints)
    .filter(({ path, sizeBytes, modifiedAtMs }) => {
      return modifiedAtMs > sinceMs && !RECORD.test(path) && (SAVED.test(path) || sizeBytes >= LARGE_BYTES)
    })
    .sort((a, b) => b.modifiedAtMs - a.modifiedAtMs)
    .map(({ path, sizeBytes }) => ({ path: relative(work, path), sizeBytes }))
}

function entriesOf(folder: string, leaveOut?: string): Entry[] {
  const found: Entry[] = []
  const waiting = [folder]
  for (let at = waiting.pop(); at !== undefined && found.length < ENTRIES_MAX; at = waiting.pop()) {
    for (const name of namesIn(at)) {
      const path = join(at, name)
      const status = lstatSync(path, { throwIfNoEntry: false })
      if (status === undefined || path === leaveOut || NOT_OURS.has(name)) continue
      if (status.isDirectory()) waiting.push(path)
      else found.push({ path, sizeBytes: status.size, modifiedAtMs: status.mtimeMs })
    }
  }
  return found
}

/** Empty if the folder does not exist. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}
