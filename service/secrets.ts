import { randomBytes } from 'node:crypto'
import { BackendError } from '../backends/errors'
import { secretsNeeded } from '../core/job/job'
import type { Order } from '../core/job/plan'
import { layout } from '../storage/layout'
import {
  attemptKey,
  ensureDeploymentKey,
  formatKey,
  handOverKey,
  openSecrets,
  sealSecrets,
} from '../storage/secrets'
import type { ObjectStore } from '../storage/store'

/** Passes a job's secrets from the client's sealed document to each attempt's own document. */
export class SecretIssuer {
  private constructor(
    private readonly store: ObjectStore,
    private readonly keyFile: string,
    private readonly key: Buffer,
  ) {}

  static async open(store: ObjectStore, keyFile: string): Promise<SecretIssuer> {
    return new SecretIssuer(store, keyFile, await ensureDeploymentKey(keyFile))
  }

  /** Seals the job's secrets again for one attempt. Does nothing for a job without any. */
  async handOver({ jobId, attempt, attemptId, runner }: Order): Promise<void> {
    if (secretsNeeded(runner).length === 0) return
    const sealed = await this.store.get(layout.secrets(jobId))
    if (sealed === undefined) {
      throw new BackendError({
        class: 'invalid',
        message: `The secrets of ${jobId} are not in the object store.`,
      })
    }
    const values = this.unseal(attemptKey(this.key, jobId), sealed)
    const again = sealSecrets(attemptKey(this.key, attemptId), values, randomBytes(NONCE_BYTES))
    await this.store.put(layout.attemptSecrets(jobId, attempt), again)
  }

  /** A text about a job's machine, with every secret of the job replaced by `***`. */
  async mask(jobId: string, text: string): Promise<string> {
    const sealed = await this.store.get(layout.secrets(jobId))
    if (sealed === undefined) return text
    const values = Object.values(this.unseal(attemptKey(this.key, jobId), sealed))
    return values
      .filter((value) => value.length >= MASKED_CHARS_MIN)
      .reduce((masked, value) => masked.replaceAll(value, '***'), text)
  }

  /** The key with which the machine of an attempt opens its secrets, as the text of a key file. */
  keyOf(attemptId: string): string {
    return formatKey(attemptKey(this.key, attemptId)).trim()
  }

  /** The key of the hand-over of one send. */
  handOverKeyOf(send: string): Buffer {
    return handOverKey(this.key, send)
  }

  private unseal(key: Buffer, sealed: Buffer): ReturnType<typeof openSecrets> {
    try {
      return openSecrets(key, sealed.toString('utf8'))
    } catch (error) {
      const message = 'The secrets of the job cannot be decrypted: client and worker have different keys.'
      const hint = `Set both to the same CRUCIBLE_SECRET_KEY_FILE (here: ${this.keyFile}).`
      throw new BackendError({ class: 'auth', message, hint }, { cause: error })
    }
  }
}

const NONCE_BYTES = 16
/** Minimum length of a masked value, the runner's limit: shorter values would hide half of every text. */
const MASKED_CHARS_MIN = 4
