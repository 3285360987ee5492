/** The properties of buckets that S3 knows and the server behind the front does not: their regions and most of their configuration. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { StoreProblem } from './problems'

const XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'

interface Bucket {
  region: string
  /** Documents by subresource, as the client sent them. */
  settings: Record<string, string>
}

/** The answer for a setting that was never put: a document, or an error code. */
const UNSET: Readonly<Record<string, { body: string } | { code: string }>> = {
  lifecycle: { code: 'NoSuchLifecycleConfiguration' },
  publicAccessBlock: {
    body:
      '<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls>' +
      '<BlockPublicPolicy>true</BlockPublicPolicy><RestrictPublicBuckets>true</RestrictPublicBuckets></PublicAccessBlockConfiguration>',
  },
  encryption: {
    body:
      `<ServerSideEncryptionConfiguration ${XMLNS}><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>` +
      '</ApplyServerSideEncryptionByDefault><BucketKeyEnabled>false</BucketKeyEnabled></Rule></ServerSideEncryptionConfiguration>',
  },
  ownershipControls: {
    body: `<OwnershipControls ${XMLNS}><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>`,
  },
  versioning: { body: `<VersioningConfiguration ${XMLNS}/>` },
  tagging: { code: 'NoSuchTagSet' },
  policy: { code: 'NoSuchBucketPolicy' },
  cors: { code: 'NoSuchCORSConfiguration' },
  logging: { body: `<BucketLoggingStatus ${XMLNS}/>` },
  notification: { body: `<NotificationConfiguration ${XMLNS}/>` },
  requestPayment: {
    body: `<RequestPaymentConfiguration ${XMLNS}><Payer>BucketOwner</Payer></RequestPaymentConfiguration>`,
  },
}

export class Buckets {
  private readonly buckets: Map<string, Bucket>

  /**
   * @param path the file that stores it; without one it ends with the process
   * @param regionDefault the region of buckets that were not created through the front
   */
  constructor(
    private readonly path: string | undefined,
    private readonly regionDefault: string,
  ) {
    this.buckets = new Map(Object.entries(readAll(path)))
  }

  regionOf(bucket: string): string {
    return this.buckets.get(bucket)?.region ?? this.regionDefault
  }

  /** The key of KMS that encrypts the objects of a bucket; undefined for S3's own keys, which everybody in the account may use. */
  keyOf(bucket: string): string | undefined {
    const document = this.buckets.get(bucket)?.settings['encryption'] ?? ''
    if (!/<SSEAlgorithm>aws:kms(?::dsse)?<\/SSEAlgorithm>/.test(document)) return undefined
    return /<KMSMasterKeyID>([^<]+)<\/KMSMasterKeyID>/.exec(document)?.[1]
  }

  /** The context of the encryption of an object: its ARN, or with a bucket key that of the bucket. */
  contextOf(bucket: string, name: string): string {
    const document = this.buckets.get(bucket)?.settings['encryption'] ?? ''
    const hasBucketKey = document.includes('<BucketKeyEnabled>true</BucketKeyEnabled>')
    return `arn:aws:s3:::${bucket}${hasBucketKey ? '' : `/${name}`}`
  }

  created(bucket: string, region: string): void {
    this.buckets.set(bucket, { region, settings: {} })
    this.save()
  }

  deleted(bucket: string): void {
    this.buckets.delete(bucket)
    this.save()
  }

  /** Whether the front handles this part of a bucket's configuration. */
  isSetting(subresource: string): boolean {
    return subresource === 'location' || Object.hasOwn(UNSET, subresource)
  }

  /** Throws `StoreProblem`. */
  get(bucket: string, subresource: string): string {
    if (subresource === 'location') {
      const region = this.regionOf(bucket)
      return `<LocationConstraint ${XMLNS}>${region === 'us-east-1' ? '' : region}</LocationConstraint>`
    }
    const told = this.buckets.get(bucket)?.settings[subresource]
    if (told !== undefined) return told
    const unset = UNSET[subresource]!
    if ('body' in unset) return unset.body
    throw new StoreProblem(unset.code, 404, `The bucket ${bucket} has no ${subresource} configuration.`)
  }

  /** Throws `StoreProblem` for an invalid document. */
  put(bucket: string, subresource: string, body: string): void {
    const isDocument =
      subresource === 'policy' ? isJson(body) : /^\s*(<\?xml[^>]*>\s*)?<[A-Z]\w+[\s>/]/.test(body)
    if (!isDocument) throw new StoreProblem('MalformedXML', 400, `This is no document for ${subresource}.`)
    const known = this.buckets.get(bucket) ?? { region: this.regionDefault, settings: {} }
    known.settings[subresource] = body
    this.buckets.set(bucket, known)
    this.save()
  }

  remove(bucket: string, subresource: string): void {
    delete this.buckets.get(bucket)?.settings[subresource]
    this.save()
  }

  private save(): void {
    if (this.path === undefined) return
    writeFileSync(`${this.path}.new`, JSON.stringify(Object.fromEntries(this.buckets)))
    renameSync(`${this.path}.new`, this.path)
  }
}

function readAll(path: string | undefined): Record<string, Bucket> {
  if (path === undefined) return {}
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, Bucket>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
