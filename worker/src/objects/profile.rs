//! Credentials from the files that the AWS tools keep: `~/.aws/credentials` and `~/.aws/config`.
//!
//! `AWS_PROFILE` names the profile (`default` without), `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` other places. Read are
//! keys, with their session token, the region and the endpoint. A profile that gets its keys in another way, from single
//! sign-on, another profile's role or a program, is an error that says what to do: half an implementation of those would be
//! worse. Files are looked at again before each request and read again if they have changed, so that whoever renews keys
//! while a job runs need not stop it.

use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use std::env;
use std::fmt;
use std::fs::{self, File};
use std::future::Future;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Bytes of a file of profiles.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Settings by which a profile gets keys that are not read here.
const OTHER_WAYS: [&str; 6] =
    ["sso_session", "sso_start_url", "credential_process", "role_arn", "source_profile", "login_session"];

/// What is said of a setting that does not fit into the header of a request; its value is not repeated.
pub(super) const NO_HEADER: &str = "has a line break, a control character or one beyond ASCII in it, which no store takes; set it anew without";

/// Whether a setting can stand in the header of a request: the library panics at one that cannot.
pub(super) fn fits_header(value: &str) -> bool {
    value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the AWS profile `{profile}` cannot be used: {reason}")]
pub(super) struct ProfileError {
    pub(super) profile: String,
    pub(super) reason: String,
}

/// What a profile says.
#[derive(Default)]
pub(super) struct Profile {
    id: Option<String>,
    secret: Option<String>,
    token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
    other_way: Option<&'static str>,
}

impl Profile {
    /// Its keys; `None` if it says nothing of any.
    fn credential(&self, name: &str) -> Result<Option<AwsCredential>, ProfileError> {
        let wrong = |reason: String| ProfileError { profile: name.to_owned(), reason };
        for (setting, value) in [("aws_access_key_id", &self.id), ("aws_session_token", &self.token)] {
            if value.as_ref().is_some_and(|value| !fits_header(value)) {
                return Err(wrong(format!("its {setting} {NO_HEADER}")));
            }
        }
        match (&self.id, &self.secret, self.other_way) {
            (Some(id), Some(secret), _) => Ok(Some(AwsCredential {
                key_id: id.clone(),
                secret_key: secret.clone(),
                token: self.token.clone(),
            })),
            (Some(_), None, _) => Err(wrong("it has no aws_secret_access_key".to_owned())),
            (None, Some(_), _) => Err(wrong("it has no aws_access_key_id".to_owned())),
            (None, None, Some(way)) => Err(wrong(format!(
                "it gets its keys by `{way}`, which is not done here; hand them over by `eval \"$(aws configure \
                 export-credentials --profile {name} --format env)\"`"
            ))),
            (None, None, None) => Ok(None),
        }
    }
}

/// Where the profiles are, and which one counts.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ProfilePlace {
    name: String,
    /// Somebody has named it, so it must be there.
    is_named: bool,
    credentials: Option<PathBuf>,
    config: Option<PathBuf>,
}

/// What a file looked like when it was read.
type FileLook = Option<(SystemTime, u64)>;

impl ProfilePlace {
    /// As the environment says.
    pub(super) fn of_environment() -> Self {
        let named = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
        let home = |name: &str| env::home_dir().map(|home| home.join(".aws").join(name));
        let place =
            |variable: &str, name: &str| env::var_os(variable).map(PathBuf::from).or_else(|| home(name));
        Self {
            is_named: named.is_some(),
            name: named.unwrap_or_else(|| "default".to_owned()),
            credentials: place("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            config: place("AWS_CONFIG_FILE", "config"),
        }
    }

    /// Reads the profile.
    pub(super) fn read(&self) -> Result<Profile, ProfileError> {
        let mut profile = Profile::default();
        let mut found = false;
        for (path, section) in [(&self.config, true), (&self.credentials, false)] {
            let Some(path) = path else { continue };
            let text = match read_file(path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let reason = format!("{} cannot be read: {error}", path.display());
                    return Err(ProfileError { profile: self.name.clone(), reason });
                }
            };
            found |= take(&text, &self.name, section, &mut profile);
        }
        if self.is_named && !found {
            let reason = "no file has it; check AWS_PROFILE".to_owned();
            return Err(ProfileError { profile: self.name.clone(), reason });
        }
        Ok(profile)
    }

    /// What gives the keys of a profile as they are by then; `None` if it has none.
    pub(super) fn credentials(self, profile: &Profile) -> Result<Option<ProfileCredentials>, ProfileError> {
        let looks = self.looks();
        let Some(credential) = profile.credential(&self.name)? else { return Ok(None) };
        Ok(Some(ProfileCredentials { place: self, known: Mutex::new((looks, Arc::new(credential))) }))
    }

    fn looks(&self) -> [FileLook; 2] {
        [&self.config, &self.credentials].map(|path| {
            let metadata = fs::metadata(path.as_ref()?).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Takes what a file says of a profile; answers whether it says anything. In `config` the sections of all but the default
/// profile are called `profile NAME`.
fn take(text: &str, name: &str, is_config: bool, profile: &mut Profile) -> bool {
    let (mut found, mut inside) = (false, false);
    for line in text.lines() {
        if line.starts_with(['#', ';']) || line.trim().is_empty() {
            continue;
        }
        if let Some(header) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let mut words = header.split_whitespace();
            inside = match (words.next(), words.next(), words.next()) {
                (Some("profile"), Some(second), None) if is_config => second == name,
                (Some(first), None, _) => first == name && (!is_config || name == "default"),
                _ => false,
            };
            found |= inside;
            continue;
        }
        // What is indented belongs to the setting above it.
        if !inside || line.starts_with([' ', '\t']) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim(), value.trim());
        let place = match key {
            "aws_access_key_id" => &mut profile.id,
            "aws_secret_access_key" => &mut profile.secret,
            "aws_session_token" => &mut profile.token,
            "region" => &mut profile.region,
            "endpoint_url" => &mut profile.endpoint,
            _ => {
                profile.other_way =
                    profile.other_way.or_else(|| OTHER_WAYS.into_iter().find(|way| *way == key));
                continue;
            }
        };
        *place = Some(value.to_owned());
    }
    found
}

/// Gives the keys of a profile as they are when they are asked for.
pub(super) struct ProfileCredentials {
    place: ProfilePlace,
    known: Mutex<([FileLook; 2], Arc<AwsCredential>)>,
}

impl ProfileCredentials {
    fn now(&self) -> Result<Arc<AwsCredential>, ProfileError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let looks = self.place.looks();
        if known.0 != looks {
            let read = self.place.read()?.credential(&self.place.name)?;
            let reason = "its keys are gone".to_owned();
            let gone = || ProfileError { profile: self.place.name.clone(), reason };
            *known = (looks, Arc::new(read.ok_or_else(gone)?));
        }
        Ok(known.1.clone())
    }
}

/// Without the keys.
impl fmt::Debug for ProfileCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileCredentials").field("profile", &self.place.name).finish_non_exhaustive()
    }
}

impl CredentialProvider for ProfileCredentials {
    type Credential = AwsCredential;

    // As `async_trait` writes it.
    fn get_credential<'life0, 'async_trait>(
        &'life0 self,
    ) -> Pin<Box<dyn Future<Output = object_store::Result<Arc<AwsCredential>>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        let now = self.now();
        Box::pin(async move {
            now.map_err(|error| object_store::Error::Generic { store: "S3", source: Box::new(error) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[default]\nregion = eu-north-1\n\n[profile work]\nregion=eu-west-1\ns3 =\n  endpoint_url = x\n\
                          endpoint_url = http://127.0.0.1:1\n[profile far]\nsso_session = corp\n[work]\nregion = no\n";
    const CREDENTIALS: &str = "# keys\n[default]\naws_access_key_id = AK0\naws_secret_access_key = s0=+/\n[work]\n\
                               aws_access_key_id=AK1\naws_secret_access_key=s1\naws_session_token=t1\n[half]\n\
                               aws_access_key_id=AK2\n";

    fn place(folder: &Path, name: &str, is_named: bool) -> ProfilePlace {
        fs::write(folder.join("config"), CONFIG).unwrap();
        fs::write(folder.join("credentials"), CREDENTIALS).unwrap();
        ProfilePlace {
            name: name.to_owned(),
            is_named,
            credentials: Some(folder.join("credentials")),
            config: Some(folder.join("config")),
        }
    }

    #[test]
    fn profile_has_the_keys_region_and_endpoint_of_its_own_sections_alone() {
        let folder = tempfile::tempdir().unwrap();
        let profile = place(folder.path(), "work", true).read().unwrap();
        let keys = profile.credential("work").unwrap().unwrap();
        assert_eq!((&*keys.key_id, &*keys.secret_key, keys.token.as_deref()), ("AK1", "s1", Some("t1")));
        assert_eq!(profile.region.as_deref(), Some("eu-west-1"));
        assert_eq!(profile.endpoint.as_deref(), Some("http://127.0.0.1:1"));
        let usual = place(folder.path(), "default", false).read().unwrap();
        assert_eq!(usual.credential("default").unwrap().unwrap().secret_key, "s0=+/");
        assert_eq!((usual.region.as_deref(), usual.endpoint), (Some("eu-north-1"), None));
    }

    #[test]
    fn profile_that_is_missing_or_gets_its_keys_otherwise_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let words = |name: &str| {
            let place = place(folder.path(), name, true);
            place.read().and_then(|profile| profile.credential(name)).unwrap_err().to_string()
        };
        assert!(words("nobody").contains("AWS_PROFILE"));
        assert!(
            words("far").contains("sso_session") && words("far").contains("export-credentials --profile far")
        );
        assert!(words("half").contains("aws_secret_access_key") && !words("half").contains("AK2"));
        let none = ProfilePlace { is_named: false, ..place(folder.path(), "nobody", false) };
        assert!(none.read().unwrap().credential("nobody").unwrap().is_none());
    }

    #[test]
    fn keys_that_are_renewed_in_their_file_are_taken_from_then_on_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path(), "work", true);
        let profile = place.read().unwrap();
        let keys = place.credentials(&profile).unwrap().unwrap();
        assert_eq!(keys.now().unwrap().key_id, "AK1");
        fs::write(folder.path().join("credentials"), CREDENTIALS.replace("AK1", "AK1-renewed")).unwrap();
        assert_eq!(keys.now().unwrap().key_id, "AK1-renewed");
        assert!(!format!("{keys:?}").contains("s1"), "{keys:?}");
        fs::write(folder.path().join("credentials"), "").unwrap();
        assert!(keys.now().unwrap_err().reason.contains("gone"));
    }
}
