import type { FailureClass } from '../../core/failure'
import { MINUTE_MS } from '../../core/time/time'

/** Meaning of a code: the possible next step. */
export interface Meaning {
  class: FailureClass
  hint?: string
  /** Whether a mutating call with this code may have had an effect. */
  isUncertain?: boolean
  retryAfterMs?: number
  /** Applies to every launch of the deployment, or of one capacity type, no matter which pool reported it. */
  isDeploymentWide?: true
}

const meaning = (failureClass: FailureClass, hint?: string): Meaning => ({
  class: failureClass,
  hint,
})

/** Meaning of codes that every pool would return, because all launches share profile, image, groups and account. */
const deploymentWide = (failureClass: FailureClass, hint: string): Meaning => ({
  ...meaning(failureClass, hint),
  isDeploymentWide: true,
})

/** A launch into a reservation that has not begun. */
export const PENDING_ACTIVATION = 'InvalidCapacityReservationState.PendingActivation'

const NO_STOCK = meaning('capacity')
const THROTTLED: Meaning = { class: 'throttled' }
const SHORTLY = meaning('transient')
const FAULT: Meaning = { class: 'transient', isUncertain: true }
const BUG = meaning(
  'invalid',
  'This is an error in the order or in Crucible: check the settings CRUCIBLE_EC2_*.',
)
/** Needed once per account; afterwards every identity may launch spot machines. */
export const MAKE_SPOT_ROLE =
  'Have an administrator run once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com'
const KEYS = deploymentWide(
  'auth',
  'Give the worker valid AWS credentials (AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), and set its clock.',
)
const ENDED_KEYS = meaning('transient', 'The AWS credentials of the worker have expired. Renew them.')
const CLOCK = meaning('transient', "Enable NTP on the worker: its clock differs from AWS's by minutes.")
/** Applies to one pool only if a policy denies single types, zones or subnets. */
const RIGHTS = meaning(
  'auth',
  'Grant this identity the permission, or lift the service control policy that denies it; `crucible doctor` lists what is missing.',
)
/** Policies of companies deny launches without the tags that they demand. */
const DENIED_LAUNCH = meaning(
  'auth',
  'A policy denies this. If it demands tags, set them in CRUCIBLE_EC2_TAGS; otherwise have an administrator lift it.',
)
const PASS_ROLE = deploymentWide(
  'auth',
  'Grant this identity iam:PassRole on the role of CRUCIBLE_EC2_PROFILE; `crucible setup aws` does.',
)
/** The type is not sold in that zone at all. */
const NOT_OFFERED = meaning('capacity')
const REGION_CLOSED = deploymentWide(
  'auth',
  'Open the account or the Region for this in the AWS console, or use another Region.',
)
const MORE_QUOTA = meaning('quota', 'Ask for a higher limit in Service Quotas, or allow another backend.')
const NETWORK = meaning('invalid', 'Set CRUCIBLE_EC2_SUBNETS to subnets that exist in CRUCIBLE_EC2_REGION.')
const GROUP = deploymentWide(
  'invalid',
  'Set CRUCIBLE_EC2_SECURITY_GROUPS to groups in the network of the subnets; a new one shows within seconds.',
)
const IMAGE = deploymentWide(
  'invalid',
  'Set CRUCIBLE_EC2_IMAGE to an image that exists in CRUCIBLE_EC2_REGION.',
)
const BUCKET_REGION = meaning(
  'invalid',
  'Write the region of the bucket into CRUCIBLE_STORE: s3://BUCKET?region=REGION.',
)
const NO_AGENT = meaning('transient')

/**
 * Known codes of EC2, SSM, STS and S3, with their meanings, from the EC2 API reference ("Error codes") and the error shapes of the SDK,
 * November 2026. A missing code is `unclassified`, with its text kept.
 */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  // The offer has no machine now; another type, zone or capacity type may have one. The first code comes with HTTP 500, but is not a server
  // error.
  InsufficientInstanceCapacity: NO_STOCK,
  InsufficientCapacity: NO_STOCK,
  ReservationCapacityExceeded: NO_STOCK,
  UnfulfillableCapacity: NO_STOCK,
  Unsupported: NOT_OFFERED,
  InsufficientFreeAddressesInSubnet: meaning(
    'capacity',
    'The subnet has no free address: add another subnet.',
  ),
  InsufficientVolumeCapacity: NO_STOCK,
  InsufficientCapacityOnHost: BUG,
  InsufficientHostCapacity: BUG,
  InsufficientReservedInstanceCapacity: BUG,
  SpotMaxPriceTooLow: NO_STOCK,
  InvalidAvailabilityZone: NOT_OFFERED,
  'InvalidZone.NotFound': NOT_OFFERED,
  UnsupportedException: NO_STOCK,
  IdempotentInstanceTerminated: meaning('capacity', 'The machine of this order has ended already.'),

  VcpuLimitExceeded: MORE_QUOTA,
  InstanceLimitExceeded: MORE_QUOTA,
  MaxSpotInstanceCountExceeded: MORE_QUOTA,
  MaxSpotFleetRequestCountExceeded: MORE_QUOTA,
  MaxFleetCountExceeded: MORE_QUOTA,
  ResourceLimitExceeded: MORE_QUOTA,
  VolumeLimitExceeded: MORE_QUOTA,
  NetworkInterfaceLimitExceeded: MORE_QUOTA,
  AddressLimitExceeded: MORE_QUOTA,
  PlacementGroupLimitExceeded: MORE_QUOTA,
  ResourceCountExceeded: BUG,
  TagLimitExceeded: BUG,
  'InvalidTagKey.Malformed': BUG,

  RequestLimitExceeded: THROTTLED,
  RequestResourceCountExceeded: THROTTLED,
  Throttling: THROTTLED,
  ThrottlingException: THROTTLED,
  ThrottledException: THROTTLED,
  TooManyRequestsException: THROTTLED,
  EC2ThrottledException: THROTTLED,
  RateExceeded: THROTTLED,
  SlowDown: THROTTLED,
  MaxConfigLimitExceededException: THROTTLED,
  TargetCapacityLimitExceededException: THROTTLED,

  InternalError: FAULT,
  InternalFailure: FAULT,
  InternalServerError: FAULT,
  ServiceUnavailable: FAULT,
  Unavailable: FAULT,
  ConcurrentTagAccess: SHORTLY,
  RequestExpired: meaning(
    'transient',
    'Renew the AWS credentials of the worker, or enable NTP: EC2 reports both this way.',
  ),
  RequestTimeTooSkewed: CLOCK,
  RequestInTheFuture: CLOCK,
  ExpiredToken: ENDED_KEYS,
  ExpiredTokenException: ENDED_KEYS,
  'InvalidGroup.NotFound': GROUP,
  IncorrectInstanceState: SHORTLY,
  IncorrectState: SHORTLY,
  InvalidState: SHORTLY,
  DependencyViolation: SHORTLY,
  'InvalidPlacementGroup.InUse': SHORTLY,
  'InvalidInstanceID.NotFound': SHORTLY,
  VolumeInUse: SHORTLY,
  'InvalidSpotInstanceRequestID.NotFound': SHORTLY,
  'InvalidFleetId.NotFound': SHORTLY,
  InvalidPaginationToken: SHORTLY,
  InvalidNextToken: SHORTLY,
  ConditionalRequestConflict: SHORTLY,

  UnauthorizedOperation: RIGHTS,
  AccessDenied: RIGHTS,
  AccessDeniedException: RIGHTS,
  AuthFailure: KEYS,
  'AuthFailure.ServiceLinkedRoleCreationNotPermitted': deploymentWide('auth', MAKE_SPOT_ROLE),
  InvalidClientTokenId: KEYS,
  UnrecognizedClientException: KEYS,
  MissingAuthenticationToken: KEYS,
  SignatureDoesNotMatch: KEYS,
  InvalidSignatureException: KEYS,
  IncompleteSignature: KEYS,
  CredentialsProviderError: KEYS,
  TokenProviderError: KEYS,
  PermanentRedirect: BUCKET_REGION,
  AuthorizationHeaderMalformed: BUCKET_REGION,
  OptInRequired: REGION_CLOSED,
  PendingVerification: REGION_CLOSED,
  Blocked: REGION_CLOSED,
  OperationNotPermitted: meaning('auth', 'Take the termination protection off that machine.'),

  IdempotentParameterMismatch: BUG,
  InvalidClientToken: BUG,
  'InvalidAMIID.NotFound': IMAGE,
  'InvalidAMIID.Malformed': IMAGE,
  'InvalidAMIID.Unavailable': IMAGE,
  InvalidParameterValue: BUG,
  InvalidParameter: BUG,
  InvalidParameterCombination: BUG,
  MissingParameter: BUG,
  UnknownParameter: BUG,
  ValidationError: BUG,
  ValidationException: BUG,
  MalformedQueryString: BUG,
  UnsupportedOperation: meaning('invalid', 'Type and image do not match: check CRUCIBLE_EC2_IMAGE.'),
  'InvalidSubnetID.NotFound': NETWORK,
  'InvalidVpcID.NotFound': NETWORK,
  InvalidFleetConfiguration: BUG,
  InvalidFleetConfig: BUG,
  VPCIdNotSpecified: NETWORK,
  DefaultVpcDoesNotExist: NETWORK,
  InvalidBlockDeviceMapping: IMAGE,
  'InvalidSnapshot.NotFound': IMAGE,
  'InvalidKeyPair.NotFound': BUG,
  'InvalidIamInstanceProfileArn.Malformed': deploymentWide(
    'invalid',
    'Set CRUCIBLE_EC2_PROFILE to the name of a profile.',
  ),
  'InvalidInstanceID.Malformed': BUG,
  'InvalidPlacementGroup.Unknown': BUG,
  'InvalidCapacityReservationId.NotFound': meaning(
    'expired',
    'The reservation no longer exists: plan the job again.',
  ),
  InvalidCapacityReservationIdNotFoundException: meaning(
    'expired',
    'The reservation no longer exists: plan the job again.',
  ),
  InvalidCapacityReservationState: meaning('expired', 'The reservation is over: plan the job again.'),
  // AWS lists this code without the calls that answer it.
  [PENDING_ACTIVATION]: meaning('capacity', 'The reservation has not begun: the job waits for it.'),
  // Another customer has bought the offering, or it is over.
  InvalidCapacityBlockOfferingIdExpired: NO_STOCK,
  InvalidCapacityBlockOfferingIdNotFound: NO_STOCK,
  InvalidCapacityBlockOfferingIdMalformed: BUG,
  InvalidCapacityReservationIdMalformedException: BUG,
  'InvalidCapacityReservationId.Malformed': BUG,
  'InvalidLaunchTemplateId.NotFound': SHORTLY,
  'InvalidLaunchTemplateName.NotFoundException': SHORTLY,
  'InvalidLaunchTemplateId.VersionNotFound': SHORTLY,
  FilterLimitExceeded: BUG,

  // Remote commands.
  InvalidInstanceId: NO_AGENT,
  InvocationDoesNotExist: NO_AGENT,
  InvalidCommandId: NO_AGENT,
  InvalidPluginName: BUG,
  InvalidDocument: BUG,
  InvalidDocumentVersion: BUG,
  MaxDocumentSizeExceeded: BUG,
  InvalidParameters: BUG,
  UnsupportedPlatformType: IMAGE,
  DuplicateInstanceId: BUG,
  InvalidRole: BUG,
  InvalidNotificationConfig: BUG,
  InvalidOutputFolder: BUG,
  ParameterNotFound: meaning(
    'invalid',
    'Set CRUCIBLE_EC2_IMAGE to an image, or to a public parameter that CRUCIBLE_EC2_REGION has.',
  ),
}

/** Why an accepted machine failed, by the code of its state reason. */
const STATE_REASONS: Readonly<Record<string, Meaning>> = {
  'Server.InsufficientInstanceCapacity': NO_STOCK,
  'Server.InternalError': NO_STOCK,
  'Client.VolumeLimitExceeded': MORE_QUOTA,
  'Client.InvalidSnapshot.NotFound': IMAGE,
  // Usually a key that encrypts the image's disk and that the account may not use.
  'Client.InternalError': meaning(
    'unclassified',
    'Check that the account may use the image and the key of its disk.',
  ),
}

/** Meaning for a profile that was created moments ago: until all of EC2 knows it, EC2 calls it invalid. */
const PROFILE: Meaning = {
  class: 'transient',
  hint: 'Check that the profile of CRUCIBLE_EC2_PROFILE exists; a new one shows within a minute.',
  retryAfterMs: MINUTE_MS / 6,
  isDeploymentWide: true,
}

export const UPGRADE_PLAN =
  "Upgrade the account's plan to a paid one: AWS console, Billing and Cost Management, Free Tier."
/** Accounts on the free plan may launch a few small types. */
const FREE_PLAN = meaning('quota', UPGRADE_PLAN)

/** Codes whose meaning depends on the message. The first match counts. */
const BY_WORDS: readonly { code: string; words: RegExp; meaning: Meaning }[] = [
  { code: 'AuthFailure', words: /\bregion\b/i, meaning: REGION_CLOSED },
  { code: 'UnrecognizedClientException', words: /\bregion\b/i, meaning: REGION_CLOSED },
  { code: 'InvalidParameterValue', words: /iam instance profile/i, meaning: PROFILE },
  { code: 'InvalidParameterCombination', words: /not eligible for Free Tier/i, meaning: FREE_PLAN },
  { code: 'UnauthorizedOperation', words: /iam:PassRole/, meaning: PASS_ROLE },
  {
    code: 'UnauthorizedOperation',
    words: /ec2:(?:RunInstances|CreateFleet) on resource: \S+ with an explicit deny/,
    meaning: DENIED_LAUNCH,
  },
  {
    code: 'InvalidFleetConfiguration',
    words: /not supported in your requested Availability Zone/i,
    meaning: NOT_OFFERED,
  },
]

/** The failure behind the state reason of a machine that never ran; `undefined` for a state reason of another kind. */
export function meaningOfState(code: string): Meaning | undefined {
  return STATE_REASONS[code]
}

/** The failure behind an answer of AWS; `undefined` for a code without an entry here. */
export function meaningOf(code: string, message: string): Meaning | undefined {
  const special = BY_WORDS.find((each) => each.code === code && each.words.test(message))
  if (special !== undefined) return special.meaning
  // These services have no separate code for clock skew.
  if (/^Signature (?:expired|not yet current)/.test(message)) return CLOCK
  return MEANINGS[code]
}

/** Whether the zone never has machines of the type, so that waiting does not help. */
export function isNotOffered(code: string, message: string): boolean {
  return meaningOf(code, message) === NOT_OFFERED
}
