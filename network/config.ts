/** The settings of the environment for connections to other machines: proxies and certificate authorities. */
export type Environment = Readonly<Record<string, string | undefined>>

const PROXY_NAMES = ['http_proxy', 'https_proxy', 'grpc_proxy', 'all_proxy']
/** Servers that no proxy reaches: those of this machine, and the metadata services of a machine at AWS. */
const NEAR = ['localhost', '127.0.0.1', '::1', '169.254.169.254', '169.254.170.2', 'fd00:ec2::254']
/** The variable with the file of authorities that Node reads. */
const NODES_AUTHORITIES = 'NODE_EXTRA_CA_CERTS'

/** The value of a variable that tools know in small and in capital letters. */
export function valueOf(environment: Environment, name: string): string | undefined {
  return environment[name] || environment[name.toUpperCase()] || undefined
}

/** Returns what must not go through a proxy, as the value of NO_PROXY; `undefined` without a proxy. */
export function exemptFrom(environment: Environment): string | undefined {
  if (PROXY_NAMES.every((name) => valueOf(environment, name) === undefined)) return undefined
  const exempt = (valueOf(environment, 'no_proxy') ?? '').split(/[,\s]+/).filter(Boolean)
  return exempt.includes('*') ? '*' : [...new Set([...exempt, ...NEAR])].join(',')
}

/** Returns the variables that name files of authorities, in those of AWS's tools, of OpenSSL and of Node; none if Node's file is the only one. */
export function authorityNames(environment: Environment): string[] {
  const own = environment[NODES_AUTHORITIES]
  const further = ['AWS_CA_BUNDLE', 'SSL_CERT_FILE'].filter(
    (name) => environment[name] && environment[name] !== own,
  )
  return further.length > 0 && own ? [...further, NODES_AUTHORITIES] : further
}

/** Whether servers are reached directly, and trusted as Node does on its own. */
export function isDirect(environment: Environment): boolean {
  return exemptFrom(environment) === undefined && authorityNames(environment).length === 0
}

/** Codes of Node for a server whose certificate comes from an authority that this machine does not trust. */
export const UNTRUSTED = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]

/** Returns the remedy for a connection that ended because of its certificate; `undefined` for other errors. */
export function trustRemedyOf(code: unknown): string | undefined {
  return UNTRUSTED.includes(code as string)
    ? "Set AWS_CA_BUNDLE or SSL_CERT_FILE to the file with the certificate authority of your network's proxy."
    : undefined
}

/** The environment of this process. */
export function ownEnvironment(): Environment {
  return process.env
}

/** Keeps clients of AWS's SDK from asking on standard error for a newer Node than Crucible needs, about which a user can do nothing. */
export function silenceSdk(): void {
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
}
