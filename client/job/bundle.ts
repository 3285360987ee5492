import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BundleRef, JobSpec } from '../../core/job/job'
import { BUNDLE_LIMITS, packBundle, storeBundle, storeBundleAt } from '../../storage/bundles'
import { layout } from '../../storage/layout'
import { readRecord } from '../../storage/record'
import { readRequirements } from '../../storage/requirements'
import type { ObjectStore } from '../../storage/store'
import { CrucibleError } from '../errors'
import { submissionOf } from './history'

/** The code of a job to be submitted: known by its digest, and uploaded once the job's id is taken. */
export interface Code {
  /** Reference of the bundle; null if nothing is sent. */
  ref: BundleRef | null
  /** Sentences about files that are not sent, and about other differences from the folder. */
  warnings: readonly string[]
  upload(jobId: string): Promise<void>
  /** Uploads it under another key than that of a job. */
  uploadTo(key: string): Promise<void>
  remove(): Promise<void>
}

export const NO_CODE: Code = {
  ref: null,
  warnings: [],
  upload: async () => {},
  uploadTo: async () => {},
  remove: async () => {},
}

/** Paths of a job's folder that are never sent. */
export function leftOutOf({ directory }: JobSpec['checkpoint']): string[] {
  return directory === undefined ? [] : [directory]
}

/** Packs a folder, without the job's checkpoint directory. Throws a `BundleError` that names files that cannot be sent. */
export async function codeOf(
  store: ObjectStore,
  directory: string,
  { checkpoint, setup }: Pick<JobSpec, 'checkpoint' | 'setup'>,
): Promise<Code> {
  const bundle = await packBundle({ directory, leaveOut: leftOutOf(checkpoint), limits: BUNDLE_LIMITS })
  const { sha256, contentSha256, sizeBytes, files, warnings } = bundle
  const requirements = await readRequirements(directory, setup)
  return {
    ref: { sha256, contentSha256, sizeBytes, files, requirements },
    warnings,
    upload: async (jobId) => void (await storeBundle(store, jobId, bundle)),
    uploadTo: async (key) => void (await storeBundleAt(store, key, bundle)),
    remove: bundle.remove,
  }
}

/** Returns the code of an earlier job. Throws `not-found` if it is no longer in the store. */
export async function codeFrom(store: ObjectStore, from: string): Promise<Code> {
  const first = await readRecord(store, from, 0)
  const ref = (first && submissionOf([first])?.bundle) ?? null
  if (ref === null) return NO_CODE
  const key = layout.bundle(from, ref.sha256)
  if ((await store.head(key)) === undefined) {
    throw new CrucibleError('not-found', `The code of ${from} is no longer in the object store.`, {
      hint: 'Name the folder to send along with --workdir.',
    })
  }
  const uploadTo = async (target: string): Promise<void> => {
    if (target === key) return
    const folder = await mkdtemp(join(tmpdir(), 'crucible-bundle-'))
    try {
      const path = join(folder, 'bundle.tar.gz')
      await store.getFile(key, path)
      await store.putFile(target, path)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
  const upload = (jobId: string): Promise<void> => uploadTo(layout.bundle(jobId, ref.sha256))
  return { ref, warnings: [], upload, uploadTo, remove: async () => {} }
}
