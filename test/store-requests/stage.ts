/** A store with ten grants and, on its disk, what none of the others may touch. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { grantKeys } from '../small-cloud/grants'
import { startTestCloud, type TestCloud } from '../support/cloud'
import { putOnDisk } from '../support/on-disk'
import { RawS3, type RawKeys } from '../support/raw-s3'
import type { Names } from './grammar'

const BUCKET = 'judged'
const OTHER_BUCKET = 'another'
const JOBS = ['job-a', 'job-b', 'job-c', 'job-aa', 'job-a-2']
const ATTEMPTS = [1, 2]
/** Where the server keeps its locks. */
const LOCKS = 'store/buckets/.vgwlocks'

export interface Holder {
  job: string
  attempt: number
  keys: RawKeys
  upload: { key: string; id: string }
}

export class Stage {
  readonly holders: Holder[] = []

  private constructor(
    private readonly cloud: TestCloud,
    readonly raw: RawS3,
  ) {}

  static async open(): Promise<Stage> {
    const cloud = await startTestCloud(BUCKET)
    const stage = new Stage(cloud, new RawS3({ endpoint: cloud.storeEndpoint!, region: cloud.region }))
    await stage.furnish()
    return stage
  }

  async close(): Promise<void> {
    this.raw.close()
    await this.cloud.stop()
  }

  /** The names for requests of a holder. */
  namesFor(holder: Holder): Names {
    const { job, attempt } = holder
    const others = this.holders.filter((each) => each !== holder)
    const foreignJobs = JOBS.filter((name) => name !== job)
    return {
      bucket: BUCKET,
      otherBucket: OTHER_BUCKET,
      own: ownOf(holder),
      readable: [`store/jobs/${job}/secret`, 'store/runners/runner.pyz'],
      foreign: [
        ...foreignJobs.map((name) => `store/jobs/${name}/secret`),
        ...others.flatMap((each) => ownOf(each).map((folder) => `${folder}/kept`)),
        `store/jobs/${job}/attempts/${attempt}0/kept`,
        'store/settings.json',
        'top',
      ],
      upload: holder.upload,
      foreignUpload: others[0]!.upload,
    }
  }

  /** The texts that a holder must never read. */
  hiddenFrom({ job }: Holder): string[] {
    return [...JOBS.filter((name) => name !== job).map(canaryOf), canaryOf('settings'), canaryOf('host')]
  }

  /** Everything on the disk that a holder may not change, by path: a digest of each file, and each folder. */
  othersThan(holder: Holder): Map<string, string> {
    const own = ownOf(holder).flatMap((folder) => [
      join('store/buckets', BUCKET, folder),
      join('store/metadata', BUCKET, folder),
    ])
    const uploads = new Set(
      this.holders.filter((each) => each !== holder).map(({ upload }) => digestOf(upload.key)),
    )
    const isOwn = (path: string): boolean => {
      if (own.some((folder) => path === folder || path.startsWith(`${folder}/`))) return true
      // Locks have the digests of keys as names; folders on the way to the own ones hold no data.
      if (path.startsWith(LOCKS) || own.some((folder) => folder.startsWith(`${path}/`))) return true
      const [, inner] = path.split('/.sgwtmp/')
      if (inner === undefined) return false
      // Uploads are kept below the digest of their object's key.
      const [, hash = ''] = inner.split('/')
      return !uploads.has(hash)
    }
    const found = new Map<string, string>()
    const walk = (folder: string): void => {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name)
        const shown = relative(this.cloud.folder, path)
        // The server's socket has no content.
        const content = entry.isFile() ? digestOf(readFileSync(path)) : 'no file'
        if (!isOwn(shown)) found.set(shown, content)
        if (entry.isDirectory()) walk(path)
      }
    }
    walk(this.cloud.folder)
    return found
  }

  /** The contents of every file that a holder may write. */
  contentsOf(holder: Holder): string {
    const contents: string[] = []
    const walk = (folder: string): void => {
      for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
        if (entry.isFile()) contents.push(readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    }
    for (const folder of ownOf(holder)) walk(this.onDisk(folder))
    return contents.join('\n')
  }

  private onDisk(key: string, bucket = BUCKET): string {
    return join(this.cloud.folder, 'store', 'buckets', bucket, key)
  }

  private async furnish(): Promise<void> {
    putOnDisk(join(this.cloud.folder, 'victim', 'file'), canaryOf('host'))
    putOnDisk(this.onDisk('top'), canaryOf('settings'))
    putOnDisk(this.onDisk('store/settings.json'), canaryOf('settings'))
    putOnDisk(this.onDisk('store/runners/runner.pyz'), 'runner')
    putOnDisk(this.onDisk('store/jobs/job-a/secret', OTHER_BUCKET), canaryOf('settings'))
    for (const job of JOBS) {
      putOnDisk(this.onDisk(`store/jobs/${job}/secret`), canaryOf(job))
      for (const attempt of ATTEMPTS) {
        for (const folder of ownOf({ job, attempt })) putOnDisk(this.onDisk(`${folder}/kept`), canaryOf(job))
        putOnDisk(this.onDisk(`store/jobs/${job}/attempts/${attempt}0/kept`), canaryOf(job))
        const keys = await grantKeys(`s3://${BUCKET}/store`, this.cloud, { jobId: job, attempt })
        const key = `store/jobs/${job}/attempts/${attempt}/beat-upload`
        const { body } = await this.raw.send({ method: 'POST', target: `/${BUCKET}/${key}?uploads` }, keys)
        const id = /<UploadId>([^<]+)</.exec(body)![1]!
        const part = `/${BUCKET}/${key}?partNumber=1&uploadId=${id}`
        await this.raw.send({ method: 'PUT', target: part, body: canaryOf(job) }, keys)
        this.holders.push({ job, attempt, keys, upload: { key, id } })
      }
    }
  }
}

/** The folders that a grant may write. */
function ownOf({ job, attempt }: { job: string; attempt: number }): string[] {
  return [`store/jobs/${job}/attempts/${attempt}`, `store/jobs/${job}/checkpoints/000000000001-${attempt}`]
}

function canaryOf(of: string): string {
  return `canary-${createHash('sha256').update(of).digest('hex').slice(0, 16)}`
}

function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
