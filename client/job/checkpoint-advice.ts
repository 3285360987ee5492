import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import type { JobSpec } from '../../core/job/job'
import { SOURCE_BYTES_MAX, SOURCE_ENDINGS, SOURCES_MAX } from './sources'
import type { Submission } from './submit'

/** A program that mentions one of these knows where its checkpoints go. */
const KNOWS_CRUCIBLE = /CRUCIBLE_(?:CHECKPOINT_DIR|RESUME_FROM)|crucible_job/

/**
 * Returns warnings about the checkpoints of an interruptible job before it runs. The check is a text search: it warns of nothing if the
 * job's code is not available or mentions where checkpoints are saved.
 */
export async function checkpointAdvice({
  spec,
  directory,
}: Pick<Submission, 'spec' | 'directory'>): Promise<string[]> {
  // The code of an earlier job was checked at its submission.
  if (!spec.isInterruptible || directory === undefined) return []
  const { texts, isAll } = directory === null ? { texts: [], isAll: true } : await sourcesIn(directory)
  const all = [spec.run, spec.setup ?? '', ...Object.values(spec.env), ...texts]
  if (all.some((text) => KNOWS_CRUCIBLE.test(text))) return []
  const folder = spec.checkpoint.directory
  if (folder === undefined) return isAll ? [withoutFolder(spec)] : []
  const isMentioned = all.some((text) => text.includes(basename(folder)))
  if (isMentioned || !isAll || texts.length === 0) return []
  return [
    `No file of the job mentions ${folder}, its checkpoint.directory: check that the program saves there, or an interruption loses its work.`,
  ]
}

function withoutFolder({ run }: JobSpec): string {
  const program = run.split(/\s+/).find((word) => /\.py\b/.test(word)) ?? 'its program'
  return `An interruption loses all work of this job: it has no checkpoint.directory, and ${program} does not use CRUCIBLE_CHECKPOINT_DIR. Set checkpoint.directory to the folder where the program saves.`
}

/** Returns the texts of a folder that may show where the program saves; `isAll` is false if there are too many. */
async function sourcesIn(directory: string): Promise<{ texts: string[]; isAll: boolean }> {
  const texts: string[] = []
  const folders = [directory]
  let seen = 0
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    // A virtual environment is not the job's own code.
    if (entries.some(({ name }) => name === 'pyvenv.cfg')) continue
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        folders.push(path)
      if (!entry.isFile() || !SOURCE_ENDINGS.has(extname(entry.name).toLowerCase())) continue
      if (++seen > SOURCES_MAX) return { texts, isAll: false }
      const sizeBytes = (await stat(path).catch(() => undefined))?.size ?? 0
      if (sizeBytes <= SOURCE_BYTES_MAX) texts.push(await readFile(path, 'utf8').catch(() => ''))
    }
  }
  return { texts, isAll: true }
}
