/** Functions that a command line needs before it loads anything else. */
export { replaceAws, withDevEnvironment } from '../storage/home'
