/** The way from this machine to others: through the proxies, and trusting the certificate authorities, that the environment names. */
import { readFileSync } from 'node:fs'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import { Agent, EnvHttpProxyAgent, setGlobalDispatcher, type Dispatcher } from 'undici'
import { CodedError } from '../core/errors'
import { authorityNames, exemptFrom, ownEnvironment, valueOf, type Environment } from './config'

export { setGlobalDispatcher }

/** A setting of the network that cannot be used. */
class NetworkSettingError extends CodedError<'config'> {
  constructor(message: string) {
    super('config', message)
  }
}

/** @throws NetworkSettingError for a file that cannot be read */
function trustOf(environment: Environment): SecureContext | undefined {
  const named = authorityNames(environment)
  if (named.length === 0) return undefined
  const texts = named.map((name) => {
    try {
      return readFileSync(environment[name]!, 'utf8')
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      throw new NetworkSettingError(`${name} names ${environment[name]}, which cannot be read (${code}).`)
    }
  })
  return createSecureContext({ ca: [...rootCertificates, ...texts] })
}

/** A dispatcher of undici that takes this way. */
export function dispatcherTo(
  options: Agent.Options & { connect?: { timeout?: number } },
  environment: Environment = ownEnvironment(),
): Dispatcher {
  // Made once: it takes longer than a connection.
  const secureContext = trustOf(environment)
  const connect = { ...options.connect, ...(secureContext && { secureContext }) }
  const exempt = exemptFrom(environment)
  if (exempt === undefined) return new Agent({ ...options, connect })
  const other = valueOf(environment, 'all_proxy')
  const httpProxy = valueOf(environment, 'http_proxy') ?? other
  const httpsProxy = valueOf(environment, 'https_proxy') ?? other
  return new EnvHttpProxyAgent({
    ...options,
    connect,
    requestTls: connect,
    proxyTls: connect,
    // Proxies of companies open tunnels to port 443 only.
    proxyTunnel: false,
    httpProxy: httpProxy ?? '',
    httpsProxy: httpsProxy ?? '',
    noProxy: exempt
      .split(',')
      .map((name) => (name.includes('::') ? `[${name}]` : name))
      .join(','),
  })
}
